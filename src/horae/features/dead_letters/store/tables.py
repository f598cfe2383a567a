"""The table of replays of dead letters."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, opt, partial, table

replays = table(
    "replays",
    key("id", ID),
    col("namespace", INT),
    col("letters", TEXT),
    opt("rate", TEXT),
    opt("params", TEXT),
    col("state", TEXT),
    col("place_parcel", ID),
    col("place_item", INT),
    col("next_at", BIG),
    opt("total", BIG),
    col("matched", BIG),
    col("retried", BIG),
    col("skipped", BIG),
    col("note", TEXT),
    col("created_by", TEXT),
    col("created_at", BIG),
    opt("completed_at", BIG),
    Index("replays_namespace", "namespace", "id"),
    partial("replays_next", "next_at", where="state = 'running'"),
    partial("replays_completed", "completed_at", where="completed_at IS NOT NULL"),
)
