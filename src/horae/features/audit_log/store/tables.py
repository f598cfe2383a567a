"""Who did what: rows that follow one another, and are never changed."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BYTES, BYTEWISE, INT, TEXT, col, key, opt, partial, table

audit_log = table(
    "audit_log",
    key("seq", BIG),
    col("at", BIG),
    col("namespace", INT),
    col("actor", TEXT),
    col("actor_name", TEXT),
    col("address", TEXT),
    col("action", TEXT),
    col("target", BYTEWISE),
    col("outcome", TEXT),
    col("detail", TEXT),
    opt("begun", BIG),  # the row that says that this was begun
    col("hash", BYTES),
    Index("audit_log_namespace", "namespace", "seq"),
    Index("audit_log_actor", "namespace", "actor", "seq"),
    Index("audit_log_target", "namespace", "target", "seq"),
    partial("audit_log_begun", "begun", where="begun IS NOT NULL"),
)

# One row: where the log ends.
audit_head = table("audit_head", key("id", INT), col("seq", BIG), col("hash", BYTES), col("signature", BYTES))
