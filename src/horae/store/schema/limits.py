"""What limits remember: places in sequences, the pace of rates, and what jobs, queues and namespaces are limited to."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, BYTEWISE, ID, INT, TEXT, col, key, opt, partial, table

# The order of a sequence: a parcel's place is taken when it is submitted, under the key's lock.
tickets = table(
    "tickets",
    key("key", BYTEWISE),
    key("parcel", ID),
    col("ticket", BIG),
    Index("tickets_order", "key", "ticket"),
    small=True,
)

rates = table("rates", key("name", TEXT), col("pace", BIG), small=True)

# One row for each job, queue or namespace that has a limit of its own; it names one of the three.
limits = table(
    "limits",
    key("name", TEXT),
    opt("job", ID),
    opt("queue", INT),
    opt("namespace", INT),
    col("spec", TEXT),
    col("ready", BOOL, "false"),  # all that runs under it is marked
    partial("limits_job", "job", where="job IS NOT NULL", unique=True),
    partial("limits_queue", "queue", where="queue IS NOT NULL", unique=True),
    partial("limits_namespace", "namespace", where="namespace IS NOT NULL", unique=True),
    small=True,
)
