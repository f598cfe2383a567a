"""Signals, and what waits for them. Both go with the parcel of their execution."""

from horae.store.schema.columns import BIG, BYTES, ID, INT, TEXT, col, key, opt, table

# One for each step that waits: of a durable execution, or of the workflow that this execution runs.
awaits = table(
    "awaits",
    key("parcel", ID),
    key("item", INT),
    key("step", TEXT),
    col("name", TEXT),  # of the signal
    opt("filter", TEXT),
    opt("deadline", BIG),
    col("at", BIG),
    small=True,
)

signals = table(
    "signals",
    key("parcel", ID),
    key("item", INT),
    key("id", ID),
    col("name", TEXT),
    col("payload", BYTES),
    col("seq", INT),  # their order
    opt("taken_by", TEXT),  # the step that it was delivered to
    col("at", BIG),
)
