"""Tables of the archive: its files, and the jobs in each of them."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, table

archives = table(
    "archives",
    key("id", ID),
    col("namespace", INT),
    col("first_at", BIG),  # the earliest submission of its executions
    col("last_at", BIG),  # the latest submission of its executions
    col("executions", INT),
    col("outcomes", INT),  # one bit for each outcome in the file
    col("jobs", INT),  # the number of jobs in the file
    col("bytes", BIG),
    col("location", TEXT),
)
Index("archives_namespace", archives.c.namespace, archives.c.id)

# The jobs in each file. A file with more than 500 jobs has no rows here, and every search reads it.
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
