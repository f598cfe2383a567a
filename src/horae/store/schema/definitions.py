"""Definitions: namespaces, queues, lanes, versions of jobs, calendars, triggers and the ledgers of their fires."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, FLOAT, ID, INT, TEXT, col, counted, key, opt, partial, table

store = table("store", key("key", TEXT), col("value", TEXT), small=True)

# A deleted one keeps its row: its number is never given to another, whatever is left that bears it.
namespaces = table(
    "namespaces",
    counted("id"),
    col("name", TEXT),
    col("weight", FLOAT, "1"),
    opt("policy", TEXT),  # of its queues that say nothing of one
    col("spec", TEXT, "'{}'"),  # what else is said of it
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
    col("spec", TEXT, "'{}'"),  # what else is said of it
    col("state", TEXT, "'active'"),
    col("is_default", BOOL, "false"),  # one of a namespace at most
    col("revision", INT, "1"),  # grows with each change
    col("ranked", INT, "1"),  # by which revision's policy what is queued was ordered last
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
    col("used_at", BIG, "0"),  # about when something was given out of it last; 0 for lanes that stay
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
    opt("deleted_from", TEXT),  # the state that a restoration brings back
    opt("ending", TEXT),  # what a deletion has still to end: pending, running or all
    opt("owner", ID),  # the workflow that keeps it for one of its steps
    opt("base", ID),  # the job that it was made from, and what that step says instead
    opt("own", TEXT),
    opt("rollout", INT),  # the number of the rollout that is on
    col("words", TEXT, "''"),  # what it is looked for by
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

streaks = table(
    "streaks",
    key("job", ID),
    col("since", BIG),  # failures before this do not count any more
    opt("paused_at", BIG),  # its triggers are paused because of the failures that follow
    opt("failures", INT),
    opt("execution", ID),
    opt("triggers", TEXT),
    opt("reason", TEXT),  # why the whole job is paused, if not for failures
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

# The newest rollout of each job. Which of them are on is said by their jobs' rows, too: whoever chooses a version
# reads those anyway.
rollouts = table(
    "rollouts",
    key("job", ID),
    col("number", INT),  # grows with each change
    col("state", TEXT),  # on, promoted or aborted
    col("plan", TEXT),
    col("since", BIG),
    col("changed_at", BIG),
    col("cause", TEXT),
    col("changed_by", TEXT),  # empty when nobody did
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
    col("unused", INT, "0"),  # how often the upstream met the condition, without an interval, since it was used
    opt("execution", ID),  # the newest of these
)
Index("ix_dependencies_upstream", dependencies.c.upstream)

# Whoever looks whether a dependent may start, or changes what it depends on, holds its row here.
dependents = table("dependents", key("job", ID), small=True)

triggers = table(
    "triggers",
    key("id", ID),
    col("job", ID),
    col("namespace", INT),
    col("name", TEXT),  # one at a time has it in its job
    col("version", INT),
    col("definition", TEXT),
    col("rules", TEXT),
    opt("params", TEXT),  # over those of the job, with templates
    opt("event", TEXT),  # what an event trigger listens to
    col("state", TEXT),  # active, paused or ended
    col("valid_from", BIG),
    opt("valid_to", BIG),
    opt("ended_from", TEXT),  # the state it ended in, and how often it had fired: what a restoration brings back
    opt("fired", INT),
    col("created_at", BIG),
    Index("triggers_job", "job", "name"),
    partial("triggers_ended", "valid_to", where="state = 'ended'"),
    partial("triggers_event", "namespace", "event", where="event IS NOT NULL AND state <> 'ended'"),
)

timers = table(
    "timers",
    key("trigger_id", ID),
    col("job", ID),
    col("namespace", INT),
    opt("next_fire_at", BIG),
    col("decided_through", BIG),
    opt("last_execution", ID),
    col("fired", INT, "0"),
    opt("moved_to", BIG),  # where a calendar moved the last fire that it moved
    opt("trouble", TEXT),  # why it could not be decided when last tried
    # With the id: of many that are due at one instant a look begins behind those that were advanced.
    Index("timers_next_fire_at", "next_fire_at", "trigger_id"),
    partial("timers_trouble", "trigger_id", where="trouble IS NOT NULL"),
    small=True,
    # A look at all that is due passes over what was advanced and not yet vacuumed: at most a fiftieth of them
    storage={"autovacuum_vacuum_scale_factor": 0.02, "autovacuum_vacuum_threshold": 5000},
)

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
    # Decided more than a day after its fires: such a row is kept by when it was decided.
    partial("fires_late", "decided_at", where="decided_at > last + 86400000000"),
    small=True,
    by="last",
)

# What became of each event at each trigger that listens.
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

# A trigger that watches a place, and how far it got.
watches = table(
    "watches",
    key("id", ID),
    col("trigger_id", ID),
    col("job", ID),
    col("namespace", INT),
    col("began_at", BIG),
    col("next_poll_at", BIG),
    col("polled_at", BIG, "0"),  # when the present or the last look began: only who began it may write
    col("ready", BOOL, "false"),  # what was there in the beginning is known
    col("counted_at", BIG, "0"),  # when all that is remembered was last seen to be there
    col("objects", INT, "0"),
    opt("trouble", TEXT),  # why it could not be looked at
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
    opt("valid_to", BIG),  # when the next version took its place, or it was deleted
    partial("calendars_present", "namespace", "name", where="valid_to IS NULL", unique=True),
)

# Rows of triggers that have not ended: a change of a calendar finds whose timers to look at.
calendar_triggers = table(
    "calendar_triggers",
    key("namespace", INT),
    key("calendar", TEXT),
    key("trigger_id", ID),
    col("outside", TEXT),  # what becomes of its fires while the calendar is closed
    Index("calendar_triggers_trigger", "trigger_id"),
    small=True,
)
