"""The tables of events, webhooks, and the objects of watched places."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BYTES, ID, INT, TEXT, col, key, opt, partial, table

events = table(
    "events",
    key("id", ID),
    col("namespace", INT),
    col("within", TEXT),  # the scope of the sender's id: an event's name, a webhook or a watch
    col("key", TEXT),  # the sender's id; without one, the id of this row
    col("name", TEXT),
    col("type", TEXT),
    col("source", TEXT),
    col("payload", TEXT),
    opt("note", TEXT),  # a remark for users
    col("received_at", BIG),
    Index("events_key", "namespace", "within", "key", unique=True),
    Index("events_namespace", "namespace", "id"),
    Index("events_name", "namespace", "name", "id"),
    Index("events_received_at", "received_at"),
)

hooks = table(
    "hooks",
    key("hash", BYTES),  # of the token in its URL
    col("namespace", INT),
    col("job", ID),
    col("trigger", TEXT),
    col("secrets", TEXT),  # (secret, end of validity), newest first; sealed, not hashed, because they verify signatures
    col("created_at", BIG),
    opt("until", BIG),
    Index("hooks_trigger", "job", "trigger"),
    partial("hooks_until", "until", where="until IS NOT NULL"),
)

watched = table(
    "watched",
    key("watch", ID),
    key("object", ID),  # a digest of an object's name and version
    col("seen_at", BIG),
    Index("watched_seen_at", "watch", "seen_at"),
    small=True,
)
