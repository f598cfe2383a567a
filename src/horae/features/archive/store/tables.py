"""The archive: which files hold what was kept for long enough, and what is in each of them."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, table

archives = table(
    "archives",
    key("id", ID),
    col("namespace", INT),
    col("first_at", BIG),  # when the executions in it were submitted: from then
    col("last_at", BIG),  # to then
    col("executions", INT),
    col("outcomes", INT),  # a bit for each that is in it
    col("jobs", INT),  # how many there are executions of
    col("bytes", BIG),
    col("location", TEXT),
)
Index("archives_namespace", archives.c.namespace, archives.c.id)

# Files with very many jobs have no rows here: they are looked through.
archive_jobs = table(
    "archive_jobs",
    key("archive", ID),
    key("job", ID),
    col("namespace", INT),
    col("name", TEXT),
    col("outcomes", INT),
    Index("archive_jobs_name", "namespace", "name", "archive"),
    small=True,
)
