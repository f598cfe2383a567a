// The fields of queues, of policies by their kinds, and of quotas. `python -m tools.sdk` writes this module from their tables.

export const QUEUE = [
  {"name": "policy", "kind": "custom", "default": {"kind": "priority", "ageing": "1m"}, "help": "Who is next: fifo, priority, fair, deadline, shortest, or an object with what the kind takes.", "example": {"kind": "fair", "by": "${params.customer}"}, "flag": "--policy"},
  {"name": "concurrency", "kind": "integer", "default": null, "help": "How many of its executions run at once.", "example": null, "least": 1, "most": 1000000, "flag": "--concurrency"},
  {"name": "rate", "kind": "custom", "default": null, "help": "How often they start.", "example": "100/1m", "flag": "--rate"},
  {"name": "burst", "kind": "integer", "default": null, "help": "How many may start at once after a pause.", "example": null, "least": 1, "most": 1000000, "flag": "--burst"},
  {"name": "sequence", "kind": "flag", "default": false, "help": "Whether they run one at a time, in order, also through retries.", "example": null, "flag": "--sequence"},
  {"name": "maxQueued", "kind": "integer", "default": null, "help": "How many executions it takes: queued, or waiting to be.", "example": null, "least": 0, "most": 1000000000, "flag": "--max-queued"},
  {"name": "preempts", "kind": "flag", "default": false, "help": "Whether what waits here takes the place of preemptible work.", "example": null, "flag": "--preempts"},
  {"name": "default", "kind": "flag", "default": null, "help": "Whether jobs that name no queue go here.", "example": null, "flag": "--default"},
];

export const POLICIES = [
  {"kind": "fifo", "about": "Who came first.", "fields": []},
  {"kind": "priority", "about": "Who came first, with a head start for each level of urgency: nothing starves, unless it is strict.", "fields": [{"name": "ageing", "kind": "duration", "default": "1m", "help": "The head start of a level.", "example": "60s", "flag": "--ageing"}, {"name": "strict", "kind": "flag", "default": null, "help": "Whether a higher level always goes first.", "example": null, "flag": "--strict"}]},
  {"kind": "fair", "about": "The share that has had least, by its weight.", "fields": [{"name": "by", "kind": "custom", "default": "job", "help": "What executions are divided by: job, caller, or a template.", "example": "${params.customer}", "flag": "--by", "given": "once"}, {"name": "within", "kind": "custom", "default": {"kind": "fifo"}, "help": "The order inside a share.", "example": "priority", "flag": "--within", "given": "once"}, {"name": "weights", "kind": "custom", "default": {}, "help": "How much of the queue shares get, against others.", "example": {"acme": 5}, "flag": "--weight", "given": "pairs"}, {"name": "defaultWeight", "kind": "number", "default": 1.0, "help": "The weight of shares that are not named.", "example": null, "least": 0.001, "most": 1000, "flag": "--default-weight"}, {"name": "reserve", "kind": "custom", "default": {}, "help": "Slots that are kept for shares: so many, or a percentage of those that serve the queue.", "example": {"acme": "25%"}, "flag": "--reserve", "given": "pairs"}, {"name": "charge", "kind": "choice", "default": "time", "help": "What shares pay for: worker time, or executions.", "example": null, "words": ["time", "executions"], "flag": "--charge"}]},
  {"kind": "deadline", "about": "Whose deadline is earliest.", "fields": []},
  {"kind": "shortest", "about": "Who came first, put back by the time that it is expected to take: long ones run, too.", "fields": [{"name": "factor", "kind": "number", "default": 10.0, "help": "How many times its expected duration an execution is put back.", "example": null, "least": 0.1, "most": 1000, "flag": "--factor"}]},
];

export const QUOTA = [
  {"name": "queued", "kind": "integer", "default": null, "help": "Executions that are queued, or wait without having begun.", "example": null, "least": 0, "most": 1000000000000000, "flag": "--queued"},
  {"name": "running", "kind": "integer", "default": null, "help": "Executions that run at once.", "example": null, "least": 1, "most": 1000000000000000, "flag": "--running"},
  {"name": "executionsPerDay", "kind": "integer", "default": null, "help": "Executions that are made in a day of UTC, whatever asked for them.", "example": null, "least": 0, "most": 1000000000000000, "flag": "--executions-per-day"},
  {"name": "workerSecondsPerDay", "kind": "integer", "default": null, "help": "Seconds of workers that executions which end in the day took.", "example": null, "least": 0, "most": 1000000000000000, "flag": "--worker-seconds-per-day"},
  {"name": "storedBytesPerDay", "kind": "integer", "default": null, "help": "Bytes of params and results that the day adds.", "example": null, "least": 0, "most": 1000000000000000, "flag": "--stored-bytes-per-day"},
  {"name": "submissionsPerSecond", "kind": "number", "default": null, "help": "Executions that requests may ask for: evenly, as many at once as in a second.", "example": null, "least": 0.01, "most": 1000000, "flag": "--submissions-per-second"},
  {"name": "startsPerSecond", "kind": "number", "default": null, "help": "Executions that start, each attempt anew: evenly, as many at once as in a second.", "example": null, "least": 0.01, "most": 1000000, "flag": "--starts-per-second"},
  {"name": "over", "kind": "choice", "default": "refuse", "help": "What becomes of what goes over it: refused, or it waits.", "example": null, "words": ["refuse", "wait"], "flag": "--over"},
];
