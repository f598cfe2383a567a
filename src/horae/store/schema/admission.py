"""Tables of limits with their sequences and rates, circuit breakers, holds, and quotas with their usage."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, BYTEWISE, ID, INT, TEXT, col, key, opt, partial, table

# The order of the parcels in a sequence. A parcel gets its ticket when it is submitted, under the lock of the key.
tickets = table(
    "tickets",
    key("key", BYTEWISE),
    key("parcel", ID),
    col("ticket", BIG),
    Index("tickets_order", "key", "ticket"),
    small=True,
)

# The state of each rate: the instant at which the next start would be exactly on schedule (model/admission/rate.py).
rates = table("rates", key("name", TEXT), col("pace", BIG), small=True)

# One row for each job, queue or namespace with a limit; only one of these three columns is set.
limits = table(
    "limits",
    key("name", TEXT),
    opt("job", ID),
    opt("queue", INT),
    opt("namespace", INT),
    col("spec", TEXT),
    # whether all running slices under this limit have the flag LIMITED, by which they are counted
    col("ready", BOOL, "false"),
    partial("limits_job", "job", where="job IS NOT NULL", unique=True),
    partial("limits_queue", "queue", where="queue IS NOT NULL", unique=True),
    partial("limits_namespace", "namespace", where="namespace IS NOT NULL", unique=True),
    small=True,
)


# A circuit without a row is closed and has never been open.
circuits = table(
    "circuits",
    key("job", ID),
    key("key", TEXT),  # empty for the circuit of the whole job
    col("state", TEXT),  # closed, open or half-open
    col("era", INT),  # grows with every change of the state
    col("since", BIG),
    opt("until_at", BIG),  # when an open circuit becomes half-open; NULL if only a user closes it
    col("forced", BOOL),
    col("cause", TEXT),
    col("changed_by", TEXT),  # the user; empty for automatic changes
    col("probes", TEXT),  # a JSON list of the executions that may run while it is half-open
    # Every claim of jobs with circuits queries this index; it has no rows of closed circuits.
    partial("circuits_shut", "job", "key", where="state <> 'closed'"),
    small=True,
)

# The attempts that a circuit has counted. Each server adds to rows of its own. A row counts the attempts that ended in
# one part of the circuit's time window; `bucket` is the start of this part.
circuit_counts = table(
    "circuit_counts",
    key("job", ID),
    key("key", TEXT),
    key("era", INT),
    key("bucket", BIG),
    key("server", ID),
    col("ok", INT),
    col("failed", INT),
    Index("circuit_counts_bucket", "bucket"),
    small=True,
)

# The log of the changes of circuits.
circuit_changes = table(
    "circuit_changes",
    key("job", ID),
    key("key", TEXT),
    key("era", INT),
    col("at", BIG),
    col("state", TEXT),
    col("forced", BOOL),
    col("cause", TEXT),
    col("changed_by", TEXT),
    Index("circuit_changes_at", "at"),
    small=True,
)


holds = table(
    "holds",
    key("id", ID),
    col("namespace", INT),
    opt("queue", INT),  # NULL for every queue of the namespace
    opt("calendar", TEXT),  # the calendar of a maintenance window; NULL for a hold that a user opened
    col("from_at", BIG),  # 0: it holds at once, even if the servers' clocks differ
    opt("until_at", BIG),  # the end of a window's current or next period; NULL if there is none
    col("drain", BOOL),
    col("reason", TEXT),
    col("created_at", BIG),
    col("created_by", TEXT),
    opt("ended_at", BIG),
    opt("ended_by", TEXT),  # the user who released it; NULL if it ended by itself
    # Every claim queries this index; it has no rows of ended holds.
    partial("holds_open", "namespace", where="ended_at IS NULL"),
    small=True,
)


quotas = table("quotas", key("namespace", INT), col("spec", TEXT), col("updated_at", BIG), small=True)

# The use of each namespace by UTC day. Each server adds to rows of its own, so that servers do not wait for each other.
usage_days = table(
    "usage_days",
    key("namespace", INT),
    key("day", INT),
    key("server", ID),
    col("executions", BIG),
    col("busy_micros", BIG),
    col("stored_bytes", BIG),
    col("refused", BIG),
    Index("usage_days_day", "day"),
    small=True,
)
