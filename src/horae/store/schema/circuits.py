"""Circuit breakers: how those stand that opened or were changed by hand, what is counted, and what changed."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, ID, INT, TEXT, col, key, opt, partial, table

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
