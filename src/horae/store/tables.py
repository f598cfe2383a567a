"""Groups of table names, as constants because importing `schema/` to derive them would be slow."""

PARTITIONED = ("parcels", "history", "attempts", "logs")  # tables with a partition per day on PostgreSQL
LIVE_SHELVES = ("waiting", "queued", "running")  # the shelves of executions that have not ended
# Tables whose rows are deleted with their parcel, apart from PARTITIONED.
DELETED_WITH_PARCEL = (
    *("progress", "marks", "steps", "awaits", "signals", "blobs"),
    *("flows", "flow_steps", "flow_parcels", "flow_waits", "flow_news"),
)
