"""Tables of artifacts, and of the locations of contents to delete."""

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

# Locations of contents to which no artifact refers. These belong to uploads under way, replaced artifacts, deleted
# executions, or files of the archive that are being written.
litter = table(
    "litter",
    key("location", TEXT),
    col("at", BIG),
    opt("archive", INT),  # the namespace whose archive may get the file; NULL if no archive may
    Index("litter_at", "at"),
    partial("litter_archive", "archive", where="archive IS NOT NULL"),
)
