"""Groups of table names, as constants because importing `schema/` to derive them would be slow."""

PARTITIONED = ("parcels", "history", "attempts", "logs")  # by day on PostgreSQL
SHELVES = ("waiting", "queued", "running")
# Tables whose rows are deleted with their parcel.
BESIDE = (
    *("progress", "marks", "steps", "awaits", "signals", "blobs"),
    *("flows", "flow_steps", "flow_parcels", "flow_waits", "flow_news"),
)
