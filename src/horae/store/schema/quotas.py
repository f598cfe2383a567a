"""What namespaces may have and use, and what they used."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, table

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
