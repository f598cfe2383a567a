"""The audit log's tables: rows that form a chain and never change."""

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
    opt("begun", BIG),  # the row "begun" of the same action
    col("hash", BYTES),
    Index("audit_log_namespace", "namespace", "seq"),
    Index("audit_log_actor", "namespace", "actor", "seq"),
    Index("audit_log_target", "namespace", "target", "seq"),
    partial("audit_log_begun", "begun", where="begun IS NOT NULL"),
)

# The end of the log (id 1), and the last place that was signed, if the end is not signed (id 2).
audit_head = table("audit_head", key("id", INT), col("seq", BIG), col("hash", BYTES), col("signature", BYTES))
