"""Tables of artifacts, and of locations of contents to which no artifact refers."""

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

# Contents to which no artifact refers: of uploads under way, of replaced artifacts, or of deleted executions.
litter = table(
    "litter",
    key("location", TEXT),
    col("at", BIG),
    opt("archive", INT),  # the namespace that may archive a file there; NULL once the file is spoilt
    Index("litter_at", "at"),
    partial("litter_archive", "archive", where="archive IS NOT NULL"),
)
