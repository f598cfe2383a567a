"""Limits with their sequences and rates, circuit breakers, holds, and quotas with what was used of them."""

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


# One that never opened has no row: it is closed.
circuits = table(
    "circuits",
    key("job", ID),
    key("key", TEXT),  # empty for a job's own
    col("state", TEXT),  # closed, open or half-open
    col("era", INT),  # grows with every change
    col("since", BIG),
    opt("until_at", BIG),  # when an open one is tried again; NULL: when somebody says so
    col("forced", BOOL),
    col("cause", TEXT),
    col("changed_by", TEXT),  # empty when nobody did
    col("probes", TEXT),  # a JSON list of the executions that may run while it is half-open
    # Asked by every claim of such jobs: those of a thousand keys that are closed again are not in the way.
    partial("circuits_shut", "job", "key", where="state <> 'closed'"),
    small=True,
)

# Each server adds to its own rows; a part of a window begins at `bucket`.
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
