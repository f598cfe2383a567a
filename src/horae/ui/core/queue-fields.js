// The fields of queues, of policies by their kinds, and of quotas. `python -m tools.sdk` writes this module from their tables.

export const QUEUE = [
  {"name": "policy", "kind": "custom", "default": {"kind": "priority", "ageing": "1m"}, "help": "The order of executions: fifo, priority, fair, deadline, shortest, or an object with the kind and its fields.", "example": {"kind": "fair", "by": "${params.customer}"}, "flag": "--policy"},
  {"name": "concurrency", "kind": "integer", "default": null, "help": "How many of its executions run at once.", "example": null, "least": 1, "most": 1000000, "flag": "--concurrency"},
  {"name": "rate", "kind": "custom", "default": null, "help": "How often they start.", "example": "100/1m", "flag": "--rate"},
  {"name": "burst", "kind": "integer", "default": null, "help": "How many may start at once after a pause.", "example": null, "least": 1, "most": 1000000, "flag": "--burst"},
  {"name": "sequence", "kind": "flag", "default": false, "help": "Whether they run one at a time, in order, also through retries.", "example": null, "flag": "--sequence"},
  {"name": "maxQueued", "kind": "integer", "default": null, "help": "How many executions it holds at most, queued or waiting.", "example": null, "least": 0, "most": 1000000000, "flag": "--max-queued"},
  {"name": "preempts", "kind": "flag", "default": false, "help": "Whether executions that wait here preempt preemptible ones.", "example": null, "flag": "--preempts"},
  {"name": "default", "kind": "flag", "default": null, "help": "Whether jobs that name no queue go here.", "example": null, "flag": "--default"},
];

export const POLICIES = [
  {"kind": "fifo", "about": "First in, first out.", "fields": []},
  {"kind": "priority", "about": "Arrival order with a head start for each level of priority. Nothing starves, unless the policy is strict.", "fields": [{"name": "ageing", "kind": "duration", "default": "1m", "help": "The head start of each level of priority.", "example": "60s", "flag": "--ageing"}, {"name": "strict", "kind": "flag", "default": null, "help": "Whether a higher level always goes first.", "example": null, "flag": "--strict"}]},
  {"kind": "fair", "about": "The share that has received the least service for its weight is next.", "fields": [{"name": "by", "kind": "custom", "default": "job", "help": "The key that divides executions into shares: job, caller, or a template.", "example": "${params.customer}", "flag": "--by", "given": "once"}, {"name": "within", "kind": "custom", "default": {"kind": "fifo"}, "help": "The order inside a share.", "example": "priority", "flag": "--within", "given": "once"}, {"name": "weights", "kind": "custom", "default": {}, "help": "The weights of shares: how much of the queue each gets, compared with the others.", "example": {"acme": 5}, "flag": "--weight", "given": "pairs"}, {"name": "defaultWeight", "kind": "number", "default": 1.0, "help": "The weight of shares that are not named.", "example": null, "least": 0.001, "most": 1000, "flag": "--default-weight"}, {"name": "reserve", "kind": "custom", "default": {}, "help": "Slots reserved for shares: a number, or a percentage of the slots that serve the queue.", "example": {"acme": "25%"}, "flag": "--reserve", "given": "pairs"}, {"name": "charge", "kind": "choice", "default": "time", "help": "What counts as service of a share: worker time, or executions.", "example": null, "words": ["time", "executions"], "flag": "--charge"}]},
  {"kind": "deadline", "about": "Earliest deadline first.", "fields": []},
  {"kind": "shortest", "about": "Arrival order, delayed in proportion to the expected duration. Long executions run, too.", "fields": [{"name": "factor", "kind": "number", "default": 10.0, "help": "How much later an execution ranks: its expected duration times this factor.", "example": null, "least": 0.1, "most": 1000, "flag": "--factor"}]},
];

export const QUOTA = [
  {"name": "queued", "kind": "integer", "default": null, "help": "Executions that are queued, or wait without having started.", "example": null, "least": 0, "most": 1000000000000000, "flag": "--queued"},
  {"name": "running", "kind": "integer", "default": null, "help": "Executions that run at once.", "example": null, "least": 1, "most": 1000000000000000, "flag": "--running"},
  {"name": "executionsPerDay", "kind": "integer", "default": null, "help": "Executions created in a day of UTC, by requests or triggers.", "example": null, "least": 0, "most": 1000000000000000, "flag": "--executions-per-day"},
  {"name": "workerSecondsPerDay", "kind": "integer", "default": null, "help": "Worker seconds of the executions that end in the day.", "example": null, "least": 0, "most": 1000000000000000, "flag": "--worker-seconds-per-day"},
  {"name": "storedBytesPerDay", "kind": "integer", "default": null, "help": "Bytes of params and results added in the day.", "example": null, "least": 0, "most": 1000000000000000, "flag": "--stored-bytes-per-day"},
  {"name": "submissionsPerSecond", "kind": "number", "default": null, "help": "Executions submitted by requests, evenly spread; a second's worth may come at once.", "example": null, "least": 0.01, "most": 1000000, "flag": "--submissions-per-second"},
  {"name": "startsPerSecond", "kind": "number", "default": null, "help": "Attempts that start, evenly spread; a second's worth may start at once.", "example": null, "least": 0.01, "most": 1000000, "flag": "--starts-per-second"},
  {"name": "over", "kind": "choice", "default": "refuse", "help": "Whether executions over the quota are refused or wait.", "example": null, "words": ["refuse", "wait"], "flag": "--over"},
];
