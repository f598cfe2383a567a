"""Names of tables that belong together, for who needs no more than the names: schema/ takes a while to import."""

PARTITIONED = ("parcels", "history", "attempts", "logs")  # by day on PostgreSQL
SHELVES = ("waiting", "queued", "running")
# Rows that go when their parcel goes.
BESIDE = (
    *("progress", "marks", "steps", "awaits", "signals", "blobs"),
    *("flows", "flow_steps", "flow_parcels", "flow_waits", "flow_news"),
)
