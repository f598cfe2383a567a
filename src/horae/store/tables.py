"""Names of tables that belong together, for who needs no more than the names: schema/ takes a while to import."""

PARTITIONED = ("parcels", "history", "attempts", "logs")  # by day on PostgreSQL
SHELVES = ("waiting", "queued", "running")
BESIDE = ("progress", "marks", "steps", "blobs", "flows", "flow_steps", "flow_parcels")  # rows that go when their parcel goes
