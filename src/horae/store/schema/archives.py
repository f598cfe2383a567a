"""The archive: which files hold what was kept for long enough."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, table

archives = table(
    "archives",
    key("id", ID),
    col("namespace", INT),
    col("first_at", BIG),  # when the executions in it were submitted: from then
    col("last_at", BIG),  # to then
    col("executions", INT),
    col("bytes", BIG),
    col("location", TEXT),
)
Index("archives_namespace", archives.c.namespace, archives.c.id)
