"""What is remembered, as tables: one portable definition for both databases.

Instants are microseconds in BIGINT, JSON is TEXT, ids are native UUIDs on PostgreSQL and 16 bytes on SQLite. Only
`store/` imports this. What a single database needs beyond it (default partitions, the view) stands in
`ddl.py`; a released store is changed by a migration, never here alone.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.types import TypeEngine, UserDefinedType

metadata = MetaData()


class SmallUuid(UserDefinedType[Any]):
    """SQLite's column of 16 bytes; the declared name tells the driver to give it back as a UUID."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "UUID"


ID: TypeEngine[Any] = Uuid(native_uuid=True).with_variant(SmallUuid(), "sqlite")
INT, BIG, SMALL, TEXT, BYTES, BOOL, FLOAT = Integer, BigInteger, SmallInteger, Text, LargeBinary, Boolean, Double

# A shelf's rows come and go by the thousand a second: vacuum follows the dead rows, not a share of the table.
BUSY = {
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_vacuum_threshold": 5000,
    "autovacuum_vacuum_cost_delay": 0,
    "autovacuum_analyze_scale_factor": 0,
    "autovacuum_analyze_threshold": 50000,
}


def col(name: str, kind: Any, default: str | None = None) -> Column[Any]:
    return Column(name, kind, nullable=False, server_default=None if default is None else text(default))


def opt(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=True)


def key(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, primary_key=True, nullable=False, autoincrement=False)


def counted(name: str) -> Column[Any]:
    return Column(name, Integer, Identity(), primary_key=True)


def table(
    name: str, *items: Any, small: bool = False, by: str | None = None, storage: dict[str, int] | None = None
) -> Table:
    """Define a table.

    A small one lies in its primary key's tree on SQLite, which saves an index. PostgreSQL partitions it `by` ranges of
    a column and gets its storage settings.
    """
    return Table(
        name,
        metadata,
        *items,
        sqlite_with_rowid=not small,
        postgresql_partition_by=by and f"RANGE ({by})",
        postgresql_with=storage or {},
    )


def partial(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, postgresql_where=text(where), sqlite_where=text(where))


def _slice() -> list[Column[Any]]:
    """The columns every slice has, on whatever shelf."""
    return [
        key("parcel", ID),
        key("lo", INT),
        col("hi", INT),
        col("job", ID),
        col("queue", INT),
        col("namespace", INT),
        col("attempt", INT),
        col("failures", INT),
        col("losses", INT),
    ]


store = table("store", key("key", TEXT), col("value", TEXT), small=True)

namespaces = table(
    "namespaces",
    counted("id"),
    Column("name", TEXT, nullable=False, unique=True),
    col("weight", FLOAT, "1"),
    col("created_at", BIG),
)

queues = table(
    "queues",
    counted("id"),
    col("namespace", INT),
    col("name", TEXT),
    col("policy", TEXT, """'{"kind":"priority"}'"""),
    col("state", TEXT, "'active'"),
    col("created_at", BIG),
    Index("queues_name", "namespace", "name", unique=True),
)

lanes = table(
    "lanes",
    counted("id"),
    col("namespace", INT),
    col("queue", INT),
    col("needs", TEXT),
    col("share", TEXT, "''"),
    Index("lanes_identity", "queue", "needs", "share", unique=True),
)

jobs = table(
    "jobs",
    key("id", ID),
    col("namespace", INT),
    col("name", TEXT),
    col("version", INT),
    col("state", TEXT),
    col("created_at", BIG),
    col("updated_at", BIG),
    opt("deleted_at", BIG),
    opt("deleted_from", TEXT),  # the state that a restoration brings back
    opt("ending", TEXT),  # what a deletion has still to end: pending, running or all
    partial("jobs_ending", "id", where="ending IS NOT NULL"),
    partial("jobs_name", "namespace", "name", where="state <> 'deleted'", unique=True),
)

job_versions = table(
    "job_versions",
    key("job", ID),
    key("version", INT),
    col("spec", TEXT),
    col("queue", INT),
    col("lane", INT),
    col("created_at", BIG),
)

dependencies = table("dependencies", key("job", ID), key("upstream", ID))
Index("ix_dependencies_upstream", dependencies.c.upstream)

triggers = table(
    "triggers",
    key("id", ID),
    col("job", ID),
    col("namespace", INT),
    col("version", INT),
    col("definition", TEXT),
    col("rules", TEXT),
    col("state", TEXT),
    col("valid_from", BIG),
    opt("valid_to", BIG),
    col("created_at", BIG),
    Index("triggers_job", "job"),
)

timers = table(
    "timers",
    key("trigger_id", ID),
    col("job", ID),
    col("namespace", INT),
    opt("next_fire_at", BIG),
    col("decided_through", BIG),
    opt("last_execution", ID),
    col("fired", INT, "0"),
    opt("trouble", TEXT),  # why it could not be decided when last tried
    opt("zone_rules", TEXT),
    Index("timers_next_fire_at", "next_fire_at"),
    partial("timers_trouble", "trigger_id", where="trouble IS NOT NULL"),
    small=True,
)

fires = table(
    "fires",
    key("trigger_id", ID),
    col("first", BIG),
    key("last", BIG),
    col("disposition", TEXT),
    col("cause", TEXT),
    opt("execution", ID),
    col("decided_at", BIG),
    Index("fires_last", "last"),
    small=True,
)

parcels = table(
    "parcels",
    key("id", ID),
    col("namespace", INT),
    col("job", ID),
    col("version", INT),
    col("queue", INT),
    col("lane", INT),
    col("priority", SMALL),
    opt("deadline", BIG),
    col("due_at", BIG),
    opt("keys", TEXT),
    opt("parent", ID),
    col("delivery", SMALL),
    col("n", INT),
    col("ends", BYTES),
    col("items", BYTES),
    opt("extras", BYTES),
    col("submitted_at", BIG),
    by="id",
)

waiting = table(
    "waiting",
    *_slice(),
    col("solo", BOOL),
    col("width", INT),
    opt("wake_at", BIG),
    col("reason", TEXT),
    opt("gate", TEXT),
    partial("waiting_wake_at", "wake_at", where="wake_at IS NOT NULL"),
    partial("waiting_gate", "gate", where="gate IS NOT NULL"),
    small=True,
    storage=BUSY,
)

queued = table(
    "queued",
    *_slice(),
    col("solo", BOOL),
    col("width", INT),
    col("lane", INT),
    col("rank", BIG),
    col("queued_at", BIG),
    opt("relax_at", BIG),
    opt("expires_at", BIG),
    Index("queued_order", "lane", "rank", "parcel", "lo"),
    small=True,
    storage=BUSY,
)

running = table(
    "running",
    *_slice(),
    col("solo", BOOL),
    col("width", INT),
    col("session", ID),
    col("channel", SMALL),
    col("n", BIG),
    col("lane", INT),
    col("rank", BIG),
    col("queued_at", BIG),
    col("granted_at", BIG),
    opt("started_at", BIG),
    # In the order of the shelf: a rescue reads one session's slices in batches.
    Index("running_session", "session", "parcel", "lo"),
    small=True,
    storage=BUSY,
)

history = table(
    "history",
    *_slice(),
    col("state", TEXT),
    col("reason", TEXT),
    col("worker", TEXT),
    opt("queued_at", BIG),
    opt("started_at", BIG),
    col("completed_at", BIG),
    opt("exit_code", INT),
    opt("ends", BYTES),
    opt("results", BYTES),
    opt("timings", BYTES),
    opt("error", TEXT),
    Index("history_job", "job", "parcel"),
    partial("history_dead", "namespace", "parcel", where="state = 'failed'"),
    by="parcel",
)

attempts = table(
    "attempts",
    key("parcel", ID),
    key("attempt", INT),
    key("lo", INT),
    col("hi", INT),
    col("worker", TEXT),
    col("session", ID),
    col("outcome", TEXT),
    opt("started_at", BIG),
    col("ended_at", BIG),
    opt("exit_code", INT),
    opt("error", TEXT),
    by="parcel",
)

logs = table(
    "logs",
    key("parcel", ID),
    key("item", INT),
    key("attempt", INT),
    key("seq", INT),
    col("count", INT),
    col("lines", BYTES),
    by="parcel",
)

progress = table(
    "progress",
    key("parcel", ID),
    key("item", INT),
    col("attempt", INT),
    col("percent", FLOAT),
    col("message", TEXT),
    col("at", BIG),
    small=True,
)

marks = table(
    "marks",
    key("parcel", ID),
    key("item", INT),
    col("kind", TEXT),
    opt("execution", ID),
    col("at", BIG),
    small=True,
)

requests = table(
    "requests",
    key("parcel", ID),
    key("item", INT),
    col("attempt", INT),
    key("kind", TEXT),
    col("session", ID),
    col("created_at", BIG),
    Index("requests_session", "session"),
    small=True,
)

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
    Index("sessions_state", "state"),
    # Heartbeats rewrite a row in its own page: half of it stays free, and last_seen has no index.
    storage={**BUSY, "autovacuum_vacuum_threshold": 500, "fillfactor": 50},
)

servers = table(
    "servers",
    key("id", ID),
    col("url", TEXT),
    col("host", TEXT),
    col("pid", INT),
    col("version", TEXT),
    col("started_at", BIG),
    col("last_seen", BIG),
)

holders = table("holders", key("key", TEXT), key("parcel", ID), key("lo", INT), small=True)

unique_keys = table(
    "unique_keys",
    key("namespace", INT),
    key("scope", TEXT),
    key("key", TEXT),
    col("execution", ID),
    col("until", BIG),
    Index("unique_keys_until", "until"),
    small=True,
)

idempotency = table(
    "idempotency",
    key("namespace", INT),
    key("route", TEXT),
    key("key", TEXT),
    col("body_hash", BYTES),
    opt("status", INT),
    opt("answer", BYTES),
    col("until", BIG),
    col("created_at", BIG),
    Index("idempotency_until", "until"),
)

steps = table(
    "steps",
    key("parcel", ID),
    key("item", INT),
    key("name", TEXT),
    col("attempt", INT),
    col("result", BYTES),
    col("at", BIG),
)

blobs = table("blobs", key("parcel", ID), key("item", INT), col("content", BYTES))

joins = table(
    "joins",
    key("dependent", ID),
    key("step", TEXT),
    key("interval_start", BIG),
    col("state", TEXT),
    col("remaining", INT),
    small=True,
)

keys = table(
    "keys",
    key("id", TEXT),
    col("hash", BYTES),
    col("name", TEXT),
    col("namespace", INT),
    col("role", TEXT),
    col("created_at", BIG),
    opt("expires_at", BIG),
    opt("last_used_at", BIG),
    opt("revoked_at", BIG),
)

sign_in_codes = table("sign_in_codes", key("hash", BYTES), col("namespace", INT), col("role", TEXT), col("until", BIG))

cookies = table(
    "cookies", key("hash", BYTES), col("key_id", TEXT), col("csrf", TEXT), col("created_at", BIG), col("until", BIG)
)

duties = table("duties", key("name", TEXT), opt("holder", ID), col("epoch", INT), col("until", BIG), small=True)

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
