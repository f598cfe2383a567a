"""Tables of definitions: namespaces, queues, lanes, jobs, calendars, triggers, and the ledgers of their fires."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, FLOAT, ID, INT, TEXT, col, counted, key, opt, partial, table

# Facts about the whole store, such as its epoch and its installation.
store = table("store", key("key", TEXT), col("value", TEXT), small=True)

# A deleted namespace keeps its row, so that its id is never reused and other rows with this id stay unambiguous.
namespaces = table(
    "namespaces",
    counted("id"),
    col("name", TEXT),
    col("weight", FLOAT, "1"),
    opt("policy", TEXT),  # the default policy of its queues
    col("spec", TEXT, "'{}'"),  # all other settings
    col("state", TEXT, "'active'"),  # active, erasing or deleted
    col("created_at", BIG),
    col("updated_at", BIG, "0"),
    partial("namespaces_name", "name", where="state <> 'deleted'", unique=True),
)

queues = table(
    "queues",
    counted("id"),
    col("namespace", INT),
    col("name", TEXT),
    col("policy", TEXT, """'{"kind":"priority"}'"""),
    col("spec", TEXT, "'{}'"),  # all other settings of the queue
    col("state", TEXT, "'active'"),
    col("is_default", BOOL, "false"),  # true for at most one queue of a namespace
    col("revision", INT, "1"),  # grows with each change
    col("ranked", INT, "1"),  # the revision whose policy was last used to rank all queued executions
    col("created_at", BIG),
    Index("queues_name", "namespace", "name", unique=True),
)

lanes = table(
    "lanes",
    counted("id"),
    col("namespace", INT),
    col("queue", INT),
    col("needs", TEXT),
    col("share", TEXT, "''"),
    col("used_at", BIG, "0"),  # the approximate time of its last use; 0 for lanes that are never deleted
    Index("lanes_identity", "queue", "needs", "share", unique=True),
)

jobs = table(
    "jobs",
    key("id", ID),
    col("namespace", INT),
    col("name", TEXT),
    col("version", INT),
    col("state", TEXT),
    col("created_at", BIG),
    col("updated_at", BIG),
    opt("deleted_at", BIG),
    opt("deleted_from", TEXT),  # the state to which a restoration returns
    opt("ending", TEXT),  # the executions that a deletion still has to end: pending, running or all
    opt("owner", ID),  # the workflow that owns this job for one of its steps
    opt("base", ID),  # the job of which an owned job is a copy
    opt("own", TEXT),  # the fields that an owned job's step overrides
    opt("rollout", INT),  # the number of the rollout under way
    col("words", TEXT, "''"),  # the text that searches look into: name, description and tags in lower case
    partial("jobs_ending", "id", where="ending IS NOT NULL"),
    partial("jobs_paused", "namespace", "name", "id", where="state = 'paused'"),
    partial("jobs_deleted", "namespace", "name", "id", where="state = 'deleted'"),
    partial("jobs_owner", "owner", where="owner IS NOT NULL"),
    partial("jobs_base", "base", where="base IS NOT NULL"),
    partial("jobs_name", "namespace", "name", where="state <> 'deleted'", unique=True),
)

uses = table(
    "uses",
    key("job", ID),  # a workflow
    key("used", ID),  # a job that it runs
    Index("uses_used", "used"),
)

# The pause of a job's triggers after consecutive failures, or of the whole job. Failures are counted from history.
streaks = table(
    "streaks",
    key("job", ID),
    col("since", BIG),  # failures before this instant do not count
    opt("paused_at", BIG),  # when the triggers or the job were paused; NULL if they are not
    opt("failures", INT),  # the number of consecutive failures that led to the pause
    opt("execution", ID),  # the last failed execution
    opt("triggers", TEXT),  # the triggers that were paused
    opt("reason", TEXT),  # why the whole job was paused, if not because of failures
    small=True,
)

job_versions = table(
    "job_versions",
    key("job", ID),
    key("version", INT),
    col("spec", TEXT),
    col("queue", INT),
    col("lane", INT),
    col("created_at", BIG),
)

# The newest rollout of each job. The number of a rollout under way is also in the job's row, because code that chooses
# a version reads that row anyway.
rollouts = table(
    "rollouts",
    key("job", ID),
    col("number", INT),  # grows with each change of the rollout
    col("state", TEXT),  # on, promoted or aborted
    col("plan", TEXT),
    col("since", BIG),
    col("changed_at", BIG),
    col("cause", TEXT),
    col("changed_by", TEXT),  # the user; empty for automatic changes
    small=True,
)

templates = table(
    "templates",
    key("id", ID),
    col("namespace", INT),
    col("name", TEXT),
    col("version", INT),
    col("created_at", BIG),
    col("updated_at", BIG),
    opt("deleted_at", BIG),
    partial("templates_name", "namespace", "name", where="deleted_at IS NULL", unique=True),
)

template_jobs = table("template_jobs", key("job", ID), col("template", ID), small=True)
Index("template_jobs_template", template_jobs.c.template)

dependencies = table(
    "dependencies",
    key("job", ID),
    key("upstream", ID),
    col("condition", TEXT, "'success'"),
    # the number of executions of the upstream job that met the condition and have started nothing yet; executions with
    # an interval are not counted here
    col("unused", INT, "0"),
    opt("execution", ID),  # the newest of those that met the condition
)
Index("ix_dependencies_upstream", dependencies.c.upstream)

# One row for each job with dependencies. A transaction locks it to decide whether the job may start, or to change its
# dependencies.
dependents = table("dependents", key("job", ID), small=True)

triggers = table(
    "triggers",
    key("id", ID),
    col("job", ID),
    col("namespace", INT),
    col("name", TEXT),  # unique among the live triggers of its job
    col("version", INT),
    col("definition", TEXT),
    col("rules", TEXT),
    opt("params", TEXT),  # params of the trigger's executions, merged over the job's; may contain templates
    opt("event", TEXT),  # the name of the event for an event trigger
    col("state", TEXT),  # active, paused or ended
    col("valid_from", BIG),
    opt("valid_to", BIG),
    opt("ended_from", TEXT),  # the state before the trigger ended; a restoration returns to it
    opt("fired", INT),  # the number of fires when the trigger ended; a restoration returns to it
    col("created_at", BIG),
    Index("triggers_job", "job", "name"),
    partial("triggers_ended", "valid_to", where="state = 'ended'"),
    partial("triggers_event", "namespace", "event", where="event IS NOT NULL AND state <> 'ended'"),
)

# The state of each active or paused trigger: when it fires next, and the instant through which its fires were decided.
timers = table(
    "timers",
    key("trigger_id", ID),
    col("job", ID),
    col("namespace", INT),
    opt("next_fire_at", BIG),
    col("decided_through", BIG),
    opt("last_execution", ID),
    col("fired", INT, "0"),
    opt("moved_to", BIG),  # the instant to which a calendar moved the trigger's last fire
    opt("trouble", TEXT),  # why the next fire could not be computed at the last try
    # The id is in this index so that a scan of many timers due at one instant can start after those already advanced.
    Index("timers_next_fire_at", "next_fire_at", "trigger_id"),
    partial("timers_trouble", "trigger_id", where="trouble IS NOT NULL"),
    small=True,
    # A scan of due timers has to skip the dead rows of advanced timers until they are vacuumed. This setting limits
    # dead rows to a fiftieth of the table.
    storage={"autovacuum_vacuum_scale_factor": 0.02, "autovacuum_vacuum_threshold": 5000},
)

# The ledger: one row for each fire, or for each range of fires (`first` to `last`) with the same disposition.
fires = table(
    "fires",
    key("trigger_id", ID),
    col("first", BIG),
    key("last", BIG),
    col("disposition", TEXT),
    col("cause", TEXT),
    opt("execution", ID),
    col("decided_at", BIG),
    Index("fires_last", "last"),
    # Rows that were decided more than a day after their fires; their retention counts from the decision.
    partial("fires_late", "decided_at", where="decided_at > last + 86400000000"),
    small=True,
    by="last",
)

# The disposition of each event at each trigger that listens to it.
event_fires = table(
    "event_fires",
    key("trigger_id", ID),
    key("event", ID),
    col("job", ID),
    col("at", BIG),
    col("disposition", TEXT),
    col("cause", TEXT),
    opt("execution", ID),
    Index("event_fires_event", "event"),
    Index("event_fires_at", "at", "trigger_id"),
    small=True,
)

# The progress of a trigger that watches a folder or a bucket.
watches = table(
    "watches",
    key("id", ID),
    col("trigger_id", ID),
    col("job", ID),
    col("namespace", INT),
    col("began_at", BIG),
    col("next_poll_at", BIG),
    col("polled_at", BIG, "0"),  # the start of the latest scan; only the server that began this scan may write
    col("ready", BOOL, "false"),  # whether the first scan has ended; it records the initial contents without firing
    col("counted_at", BIG, "0"),  # the start of the last scan that marked every object as seen
    col("objects", INT, "0"),
    opt("trouble", TEXT),  # why the location could not be scanned
    Index("watches_next_poll_at", "next_poll_at"),
    Index("watches_trigger", "trigger_id"),
)

calendars = table(
    "calendars",
    key("namespace", INT),
    key("name", TEXT),
    key("version", INT),
    col("definition", TEXT),
    col("description", TEXT, "''"),
    col("valid_from", BIG),
    opt("valid_to", BIG),  # when the next version began or the calendar was deleted
    partial("calendars_present", "namespace", "name", where="valid_to IS NULL", unique=True),
)

# Triggers that use a calendar and have not ended, so that a change of the calendar finds the timers to compute again.
calendar_triggers = table(
    "calendar_triggers",
    key("namespace", INT),
    key("calendar", TEXT),
    key("trigger_id", ID),
    col("outside", TEXT),  # how fires are treated while the calendar is closed
    Index("calendar_triggers_trigger", "trigger_id"),
    small=True,
)
