"""Files that executions leave behind: what they are called here, and what lies where for nobody."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, opt, partial, table

artifacts = table(
    "artifacts",
    key("parcel", ID),
    key("item", INT),
    key("name", TEXT),
    col("attempt", INT),
    col("size", BIG),
    col("type", TEXT),
    col("sha256", TEXT),
    col("location", TEXT),
    col("at", BIG),
)

# Contents that no artifact names: on their way, replaced, or of executions that are forgotten.
litter = table(
    "litter",
    key("location", TEXT),
    col("at", BIG),
    opt("archive", INT),  # the namespace in whose archive it may come to lie; none any more once it is spoilt
    Index("litter_at", "at"),
    partial("litter_archive", "archive", where="archive IS NOT NULL"),
)
