"""Tables of workflow executions: a row for each workflow, step and wait, the parcels of steps' children, and events.

In each row, `parcel` and `item` are the execution that runs the workflow, and all rows are deleted with this parcel. A
step may run another workflow, which makes a tree. The row of its root in `flows` is the lock of the whole tree.
"""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, BYTES, ID, INT, SMALL, TEXT, col, key, opt, partial, table

flows = table(
    "flows",
    key("parcel", ID),
    key("item", INT),
    # The following columns never change.
    col("execution", ID),  # the execution that runs the workflow, and is the parent of the executions of its steps
    col("root", ID),  # the execution at the top of the tree; the same as `execution` if that is no step of another
    opt("parent", ID),  # the execution of the workflow of which this one is a step
    col("namespace", INT),
    col("job", ID),
    col("version", INT),
    col("digest", TEXT),  # the digest of the workflow's graph
    col("params", BYTES),
    col("extra", BYTES),  # the properties that the steps' executions inherit
    col("priority", SMALL),
    opt("deadline", BIG),
    col("due_at", BIG),
    col("queued_at", BIG),
    col("began_at", BIG),
    opt("until", BIG),  # when the workflow's time limit is reached
    col("pins", TEXT),  # JSON: for each step, the job and the version at the start
    # The following columns are the current state.
    col("state", TEXT),  # opening, running, failing, cancelling, undoing, ending or ended
    col("phase", TEXT),
    col("verdict", TEXT),
    col("remaining", INT),  # the number of steps of the current phase that have not ended
    col("begun", INT),  # how many of these remaining steps have begun
    col("ended", INT),  # the number of ended steps in all phases; it gives ended steps an order
    col("stopped", BOOL),
    col("paused", BOOL),
    col("cause", TEXT),
    col("reason", TEXT),
    opt("error", TEXT),
    col("marks", TEXT),  # breakpoints, and steps to undo
    col("stops", TEXT),  # the steps whose executions must still be cancelled; a star means all steps
    opt("wake_at", BIG),  # when a server has to check the workflow
    Index("flows_execution", "execution", unique=True),
    Index("flows_root", "root"),
    partial("flows_wake_at", "wake_at", where="wake_at IS NOT NULL"),
)

flow_steps = table(
    "flow_steps",
    key("parcel", ID),
    key("item", INT),
    key("step", TEXT),
    opt("job", ID),  # the job that the step runs
    opt("version", INT),
    col("phase", TEXT),  # main, onSuccess, onFailure, finally or undo
    col("state", TEXT),  # pending, held, waiting, running, success, failed, skipped or cancelled
    col("missing", INT),  # upstream steps that have not ended; the next three columns count the ended ones by state
    col("succeeded", INT),
    col("failed", INT),
    col("skipped", INT),
    opt("execution", ID),  # the step's latest child execution, or the first child of a foreach
    col("iteration", INT),  # the number of a loop's runs before the current one
    col("total", INT),  # the number of children of a foreach
    col("ok", INT),  # the number of its children that succeeded
    col("bad", INT),  # the number of its children that ended otherwise
    col("taken", INT, "0"),  # the number of its children that are reused by a rerun; they are counted in `ok`, too
    opt("began_at", BIG),
    opt("ended_at", BIG),
    opt("ended_seq", INT),
    opt("result", BYTES),  # NULL for the value null, and for a large result, which is stored only with the child
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
    col("taken", BOOL, "false"),  # whether these are children of an earlier execution that a rerun reuses
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
    col("wait", TEXT),  # JSON of the whole definition of the wait, with its templates filled in
    opt("remind_at", BIG),
    col("at", BIG),
    partial("flow_waits_event", "namespace", "name", where="kind = 'event'"),
    partial("flow_waits_approval", "namespace", "at", where="kind = 'approval'"),
    partial("flow_waits_remind_at", "remind_at", where="remind_at IS NOT NULL"),
)

# Events that arrived while a step waited for them.
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
