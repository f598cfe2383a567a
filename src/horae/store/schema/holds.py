"""Holds: when nothing of a queue, or of a whole namespace, is started."""

from horae.store.schema.columns import BIG, BOOL, ID, INT, TEXT, col, key, opt, partial, table

holds = table(
    "holds",
    key("id", ID),
    col("namespace", INT),
    opt("queue", INT),  # NULL for every queue of the namespace
    opt("calendar", TEXT),  # of a maintenance window; NULL for a hold that was opened by hand
    col("from_at", BIG),  # 0: from when it was opened, whatever clocks say
    opt("until_at", BIG),  # of a window: when its present or next opening ends; NULL when none is to come
    col("drain", BOOL),
    col("reason", TEXT),
    col("created_at", BIG),
    col("created_by", TEXT),
    opt("ended_at", BIG),
    opt("ended_by", TEXT),  # who released it; NULL when its time was over
    # Looked at by every claim: what has ended is not in the way.
    partial("holds_open", "namespace", where="ended_at IS NULL"),
    small=True,
)
