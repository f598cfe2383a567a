"""The fleet: sessions, servers with their duties and counts, and the charges and places of queues."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BUSY, BYTES, ID, INT, TEXT, col, key, opt, table

sessions = table(
    "sessions",
    key("id", ID),
    col("namespace", INT),
    col("worker", TEXT),
    col("presence", TEXT),
    col("capabilities", TEXT),
    col("queues", TEXT),
    col("concurrency", INT),
    col("state", TEXT),
    col("epoch", INT),
    col("seen", BYTES),
    col("last_seen", BIG),
    col("created_at", BIG),
    opt("ended_at", BIG),
    opt("api_key", TEXT),  # the id of the key of its registration
    Index("sessions_state", "state", "namespace", "worker"),
    Index("sessions_key", "api_key", "state"),
    # Half of each page stays free and last_seen has no index, so that heartbeats rewrite rows within their page.
    storage={**BUSY, "autovacuum_vacuum_threshold": 500, "fillfactor": 50},
)

servers = table(
    "servers",
    key("id", ID),
    col("url", TEXT),
    col("host", TEXT),
    col("pid", INT),
    col("version", TEXT),
    col("parts", TEXT),  # the parts that it runs: api, gateway, scheduler
    col("started_at", BIG),
    col("last_seen", BIG),
)

duties = table(
    "duties",
    key("name", TEXT),
    opt("holder", ID),
    col("epoch", INT),
    col("until", BIG),
    opt("problem", TEXT),  # the reason why the duty cannot be done
    opt("since", BIG),
    small=True,
)

# The weighted use of fair shares: each server adds to its own rows, and the others add up the increases.
share_charges = table(
    "share_charges",
    key("queue", INT),
    key("share", TEXT),
    key("server", ID),
    col("charged", BIG),
    col("at", BIG),
    Index("share_charges_at", "at"),
    small=True,
)

reservations = table(
    "reservations",
    key("lane", INT),
    col("session", ID),  # the session that takes from this lane only
    col("since", BIG),
    opt("until", BIG),  # for a reservation that was given up: not renewed before this time
    small=True,
)

# The last worker of each affinity key.
affinities = table(
    "affinities",
    key("job", ID),
    key("key", TEXT),
    col("worker", TEXT),
    col("until", BIG),
    Index("affinities_until", "until"),
    small=True,
)

job_minutes = table(
    "job_minutes",
    key("job", ID),
    key("minute", BIG),
    key("server", ID),
    col("success", INT),
    col("failed", INT),
    col("cancelled", INT),
    col("skipped", INT),
    col("retried", INT),
    col("lost", INT),
    col("busy_micros", BIG),
    Index("job_minutes_minute", "minute"),
    small=True,
)
