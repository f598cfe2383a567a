"""What steps of workflows wait for without a child, and what has come for them and was not looked at yet."""

from horae.store.schema.columns import BIG, BYTES, ID, INT, TEXT, col, key, opt, partial, table

flow_waits = table(
    "flow_waits",
    key("parcel", ID),
    key("item", INT),
    key("step", TEXT),
    col("namespace", INT),
    col("kind", TEXT),  # event, signal, approval or callback
    col("name", TEXT),  # of the event or the signal
    col("wait", TEXT),  # all of it, with its texts filled in
    opt("remind_at", BIG),
    col("at", BIG),
    partial("flow_waits_event", "namespace", "name", where="kind = 'event'"),
    partial("flow_waits_approval", "namespace", "at", where="kind = 'approval'"),
    partial("flow_waits_remind_at", "remind_at", where="remind_at IS NOT NULL"),
)

# Events that a step listened to when they came.
flow_news = table(
    "flow_news",
    key("parcel", ID),
    key("item", INT),
    key("step", TEXT),
    key("event", ID),
    col("told", BYTES),  # the event, as filters see it
    col("at", BIG),
    small=True,
)
