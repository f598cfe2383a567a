"""The table of versions of templates."""

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, table

template_versions = table(
    "template_versions",
    key("template", ID),
    key("version", INT),
    col("body", TEXT),
    col("created_at", BIG),
)
