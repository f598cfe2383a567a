"""The table of attempts that rollouts count, by version."""

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, table

# Each server adds to its own rows. `bucket` stands for a range of durations (`model.values.bucket_of`).
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
