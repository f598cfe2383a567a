"""Rollouts of jobs: the newest of each, and what was counted of its versions."""

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, table

# Which of them are on is said by their jobs' rows, too: whoever chooses a version reads those anyway.
rollouts = table(
    "rollouts",
    key("job", ID),
    col("number", INT),  # grows with each change
    col("state", TEXT),  # on, promoted or aborted
    col("plan", TEXT),
    col("since", BIG),
    col("changed_at", BIG),
    col("cause", TEXT),
    col("changed_by", TEXT),  # empty when nobody did
    small=True,
)

# Each server adds to its own rows; `bucket` tells how long they took, in steps that grow.
rollout_counts = table(
    "rollout_counts",
    key("job", ID),
    key("since", BIG),
    key("version", INT),
    key("outcome", TEXT),  # success, failed or retried
    key("bucket", INT),
    key("server", ID),
    col("n", BIG),
    small=True,
)
