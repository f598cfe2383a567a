"""Templates of jobs: their versions, and which jobs were made from which."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, opt, partial, table

templates = table(
    "templates",
    key("id", ID),
    col("namespace", INT),
    col("name", TEXT),
    col("version", INT),
    col("created_at", BIG),
    col("updated_at", BIG),
    opt("deleted_at", BIG),
    partial("templates_name", "namespace", "name", where="deleted_at IS NULL", unique=True),
)

template_versions = table(
    "template_versions",
    key("template", ID),
    key("version", INT),
    col("body", TEXT),
    col("created_at", BIG),
)

template_jobs = table("template_jobs", key("job", ID), col("template", ID), small=True)
Index("template_jobs_template", template_jobs.c.template)
