"""The tables of backfills and their runs."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, ID, INT, SMALL, TEXT, col, key, opt, partial, table

backfills = table(
    "backfills",
    key("id", ID),
    col("namespace", INT),
    col("job", ID),
    opt("trigger_name", TEXT),  # NULL: all triggers of the job
    col("from_at", BIG),
    col("to_at", BIG),
    col("newest_first", BOOL),
    col("force", BOOL),
    col("max_concurrent", INT),
    opt("priority", SMALL),
    opt("params", TEXT),
    col("state", TEXT),
    opt("cursor_at", BIG),  # the fire that the backfill has reached: its instant, and the name of its trigger
    opt("cursor_name", TEXT),
    col("total", BIG),
    col("already", BIG),
    col("unknown", BIG),
    col("started", BIG),
    col("succeeded", BIG),
    col("failed", BIG),
    col("ended", BIG),
    opt("first_at", BIG),
    opt("last_at", BIG),
    col("known_from", BIG),
    col("note", TEXT),
    col("created_by", TEXT),
    col("created_at", BIG),
    opt("completed_at", BIG),
    Index("backfills_namespace", "namespace", "id"),
    partial("backfills_open", "id", where="completed_at IS NULL"),
    partial("backfills_completed", "completed_at", where="completed_at IS NOT NULL"),
)

# A fire that ran before keeps its row in the ledger, so a forced execution of it is recorded only here.
backfill_runs = table(
    "backfill_runs",
    key("backfill", ID),
    key("at", BIG),
    key("trigger_id", ID),
    col("execution", ID),
    col("forced", BOOL),
    opt("outcome", TEXT),
    partial("backfill_runs_open", "backfill", where="outcome IS NULL"),
    small=True,
)
