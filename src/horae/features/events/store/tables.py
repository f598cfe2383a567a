"""What comes from outside: events and what became of them, webhooks, and watched places."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, BYTES, ID, INT, TEXT, col, key, opt, partial, table

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

event_fires = table(
    "event_fires",
    key("trigger_id", ID),
    key("event", ID),
    col("job", ID),
    col("at", BIG),
    col("disposition", TEXT),
    col("cause", TEXT),
    opt("execution", ID),
    Index("event_fires_event", "event"),
    Index("event_fires_at", "at", "trigger_id"),
    small=True,
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

watches = table(
    "watches",
    key("id", ID),
    col("trigger_id", ID),
    col("job", ID),
    col("namespace", INT),
    col("began_at", BIG),
    col("next_poll_at", BIG),
    col("polled_at", BIG, "0"),  # when the present or the last look began: only who began it may write
    col("ready", BOOL, "false"),  # what was there in the beginning is known
    col("counted_at", BIG, "0"),  # when all that is remembered was last seen to be there
    col("objects", INT, "0"),
    opt("trouble", TEXT),  # why it could not be looked at
    Index("watches_next_poll_at", "next_poll_at"),
    Index("watches_trigger", "trigger_id"),
)

watched = table(
    "watched",
    key("watch", ID),
    key("object", ID),  # a digest of an object's name and version
    col("seen_at", BIG),
    Index("watched_seen_at", "watch", "seen_at"),
    small=True,
)
