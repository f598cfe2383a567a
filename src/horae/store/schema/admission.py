"""Limits with their sequences and rates, circuit breakers, holds, and quotas with their usage."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, BYTEWISE, ID, INT, TEXT, col, key, opt, partial, table

# The order of a sequence: a parcel takes its place when it is submitted, under the key's lock.
tickets = table(
    "tickets",
    key("key", BYTEWISE),
    key("parcel", ID),
    col("ticket", BIG),
    Index("tickets_order", "key", "ticket"),
    small=True,
)

rates = table("rates", key("name", TEXT), col("pace", BIG), small=True)

# One row for each job, queue or namespace with a limit; it names one of the three.
limits = table(
    "limits",
    key("name", TEXT),
    opt("job", ID),
    opt("queue", INT),
    opt("namespace", INT),
    col("spec", TEXT),
    col("ready", BOOL, "false"),  # whether all executions running under it are marked
    partial("limits_job", "job", where="job IS NOT NULL", unique=True),
    partial("limits_queue", "queue", where="queue IS NOT NULL", unique=True),
    partial("limits_namespace", "namespace", where="namespace IS NOT NULL", unique=True),
    small=True,
)


# A circuit that never opened has no row; it is closed.
circuits = table(
    "circuits",
    key("job", ID),
    key("key", TEXT),  # empty for the circuit of the whole job
    col("state", TEXT),  # closed, open or half-open
    col("era", INT),  # grows with every change
    col("since", BIG),
    opt("until_at", BIG),  # when an open circuit is tried again; NULL: only by a user
    col("forced", BOOL),
    col("cause", TEXT),
    col("changed_by", TEXT),  # the user; empty for automatic changes
    col("probes", TEXT),  # a JSON list of the executions that may run while it is half-open
    # For the query of every claim of such jobs: rows of closed circuits are not in this index.
    partial("circuits_shut", "job", "key", where="state <> 'closed'"),
    small=True,
)

# Each server adds to its own rows; `bucket` is the start of a part of a window.
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
    opt("calendar", TEXT),  # for a maintenance window; NULL for a hold that a user opened
    col("from_at", BIG),  # 0: from its opening, whatever clocks say
    opt("until_at", BIG),  # for a window: the end of its present or next opening; NULL when there is none
    col("drain", BOOL),
    col("reason", TEXT),
    col("created_at", BIG),
    col("created_by", TEXT),
    opt("ended_at", BIG),
    opt("ended_by", TEXT),  # the user who released it; NULL when its time was over
    # For the query of every claim: rows of ended holds are not in this index.
    partial("holds_open", "namespace", where="ended_at IS NULL"),
    small=True,
)


quotas = table("quotas", key("namespace", INT), col("spec", TEXT), col("updated_at", BIG), small=True)

# One row per server, so that no row is shared.
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
