"""Secrets of namespaces, sealed: the database alone reads none of them."""

from horae.store.schema.columns import BIG, BYTES, INT, TEXT, col, key, table

secrets = table(
    "secrets",
    key("namespace", INT),
    key("name", TEXT),
    col("version", INT),  # counts the values it has had
    col("sealed", BYTES),
    col("created_at", BIG),
    col("updated_at", BIG),
)
