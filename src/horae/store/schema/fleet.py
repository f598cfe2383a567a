"""Tables of the fleet: sessions and servers, duties, the use of fair shares, reservations, and counts of attempts."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BUSY, BYTES, ID, INT, TEXT, col, key, opt, table

sessions = table(
    "sessions",
    key("id", ID),
    col("namespace", INT),
    col("worker", TEXT),
    col("presence", TEXT),  # JSON of the worker's registration
    col("capabilities", TEXT),
    col("queues", TEXT),
    col("concurrency", INT),
    col("state", TEXT),
    col("epoch", INT),
    col("seen", BYTES),  # the number of the last exchange on each channel
    col("last_seen", BIG),
    col("created_at", BIG),
    opt("ended_at", BIG),
    opt("api_key", TEXT),  # the id of the API key with which the worker registered
    Index("sessions_state", "state", "namespace", "worker"),
    Index("sessions_key", "api_key", "state"),
    # Half of each page stays free and `last_seen` has no index, so that a heartbeat can write the new version of a row
    # into the same page without changing indexes.
    storage={**BUSY, "autovacuum_vacuum_threshold": 500, "fillfactor": 50},
)

servers = table(
    "servers",
    key("id", ID),
    col("url", TEXT),
    col("host", TEXT),
    col("pid", INT),
    col("version", TEXT),
    col("parts", TEXT),  # the parts of Horae that the server runs: api, gateway, scheduler
    col("started_at", BIG),
    col("last_seen", BIG),
)

# Leases on work that only one server at a time does.
duties = table(
    "duties",
    key("name", TEXT),
    opt("holder", ID),
    col("epoch", INT),
    col("until", BIG),
    opt("problem", TEXT),  # why the duty cannot be done
    opt("since", BIG),  # the beginning of this problem
    small=True,
)

# The service that each share of a fair queue has received: its granted executions, or their expected durations, divided
# by the share's weight. Each server adds to its own rows, and reads how much the rows of the other servers have grown.
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

# Sessions that are reserved for a lane, because an execution in it was passed over for too long.
reservations = table(
    "reservations",
    key("lane", INT),
    col("session", ID),  # the session, which takes executions only from this lane
    col("since", BIG),
    opt("until", BIG),  # set when the reservation is given up: the lane gets no other reservation before this instant
    small=True,
)

# The worker that last ran an execution with an affinity key.
affinities = table(
    "affinities",
    key("job", ID),
    key("key", TEXT),
    col("worker", TEXT),
    col("until", BIG),
    Index("affinities_until", "until"),
    small=True,
)

# The numbers of ended attempts and executions of each job by minute; each server adds to rows of its own.
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
