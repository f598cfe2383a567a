"""Workflows under way: rows for each workflow, step and waiting step, and the parcels of steps that fan out.

The row of the root locks the whole tree of workflows. All rows are deleted with the parcel of their parent execution.
"""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, BYTES, ID, INT, SMALL, TEXT, col, key, opt, partial, table

flows = table(
    "flows",
    key("parcel", ID),
    key("item", INT),
    # Written once
    col("execution", ID),  # the execution that runs the workflow; its children have it as their parent
    col("root", ID),  # the execution at the top of its tree: itself, unless it is a step of another workflow
    opt("parent", ID),  # the workflow of which it is a step
    col("namespace", INT),
    col("job", ID),
    col("version", INT),
    col("digest", TEXT),  # the digest of its graph
    col("params", BYTES),
    col("extra", BYTES),  # inherited by its children
    col("priority", SMALL),
    opt("deadline", BIG),
    col("due_at", BIG),
    col("queued_at", BIG),
    col("began_at", BIG),
    opt("until", BIG),  # when its time limit is reached
    col("pins", TEXT),  # step -> job and version at the start
    # The present state
    col("state", TEXT),  # opening, running, failing, cancelling, undoing, ending or ended
    col("phase", TEXT),
    col("verdict", TEXT),
    col("remaining", INT),  # steps of the phase that have not ended; `begun` counts those of them that have begun
    col("begun", INT),
    col("ended", INT),  # steps that have ended, which gives them an order
    col("stopped", BOOL),
    col("paused", BOOL),
    col("cause", TEXT),
    col("reason", TEXT),
    opt("error", TEXT),
    col("marks", TEXT),  # breakpoints, and steps to undo
    col("stops", TEXT),  # the steps whose children are to be cancelled, or a star for all
    opt("wake_at", BIG),  # when a server has to check it
    Index("flows_execution", "execution", unique=True),
    Index("flows_root", "root"),
    partial("flows_wake_at", "wake_at", where="wake_at IS NOT NULL"),
)

flow_steps = table(
    "flow_steps",
    key("parcel", ID),
    key("item", INT),
    key("step", TEXT),
    opt("job", ID),  # the job that it runs
    opt("version", INT),
    col("phase", TEXT),  # main, onSuccess, onFailure, finally or undo
    col("state", TEXT),  # pending, held, waiting, running, success, failed, skipped or cancelled
    col("missing", INT),  # upstreams that have not ended; the next three count the others by state
    col("succeeded", INT),
    col("failed", INT),
    col("skipped", INT),
    opt("execution", ID),  # its latest child, or the first of a foreach
    col("iteration", INT),
    col("total", INT),  # children of a foreach; `ok` and `bad` count the ended ones
    col("ok", INT),
    col("bad", INT),
    col("taken", INT, "0"),  # successful children that a rerun took over
    opt("began_at", BIG),
    opt("ended_at", BIG),
    opt("ended_seq", INT),
    opt("result", BYTES),  # NULL for null, and for a large result, which is stored with the child
    opt("error", TEXT),
    col("reason", TEXT),
    opt("wake_at", BIG),
    partial("flow_steps_wake_at", "wake_at", where="wake_at IS NOT NULL"),
)

flow_parcels = table(
    "flow_parcels",
    key("parcel", ID),
    key("item", INT),
    key("step", TEXT),
    key("child", ID),
    col("count", INT),
    col("taken", BOOL, "false"),  # whether these are children of another workflow that a rerun took over
    partial("flow_parcels_taken", "child", where="taken"),
    small=True,
)


flow_waits = table(
    "flow_waits",
    key("parcel", ID),
    key("item", INT),
    key("step", TEXT),
    col("namespace", INT),
    col("kind", TEXT),  # event, signal, approval or callback
    col("name", TEXT),  # the name of the event or the signal
    col("wait", TEXT),  # the whole definition, with its templates filled in
    opt("remind_at", BIG),
    col("at", BIG),
    partial("flow_waits_event", "namespace", "name", where="kind = 'event'"),
    partial("flow_waits_approval", "namespace", "at", where="kind = 'approval'"),
    partial("flow_waits_remind_at", "remind_at", where="remind_at IS NOT NULL"),
)

# Events that arrived while a step listened to them.
flow_news = table(
    "flow_news",
    key("parcel", ID),
    key("item", INT),
    key("step", TEXT),
    key("event", ID),
    col("told", BYTES),  # the event in the form that filters read
    col("at", BIG),
    small=True,
)
