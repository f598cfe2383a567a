"""What comes from outside: events, webhooks, and the objects of watched places."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BYTES, ID, INT, TEXT, col, key, opt, partial, table

events = table(
    "events",
    key("id", ID),
    col("namespace", INT),
    col("within", TEXT),  # what the sender's id is unique in: an event's name, a webhook or a watch
    col("key", TEXT),  # the sender's id; without one, this row's own
    col("name", TEXT),
    col("type", TEXT),
    col("source", TEXT),
    col("payload", TEXT),
    opt("note", TEXT),  # what is to be said of it beyond what it fired
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
    col("secrets", TEXT),  # as they are, for they sign: a list of (secret, until when), newest first
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
