"""The first rows of a new store, and cheap checks of its revision."""

from horae.env import Env, Instant
from horae.store.migrations.revisions import needs_upgrade
from horae.store.script import Fetch, Insert, Script, ScriptFactory, Statement

_HAS_VERSION = Statement(
    "has-version",
    "SELECT count(to_regclass('alembic_version'))",
    sqlite="SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'",
)
_VERSION = Statement("version", "SELECT version_num FROM alembic_version")
_PING = Statement("ping", "SELECT 1")
_LITTLE_MEMORY = Statement(
    "little_memory", "SELECT set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)"
)
_MUCH = Statement("much", "SELECT count(*) FROM generate_series(1, 50000)")  # too many rows for that memory
_CLOCK = Statement("clock", "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
_NOTIFY = Statement("notify", "SELECT pg_notify('horae', $1)")
_EPOCH = Statement("epoch", "SELECT value FROM store WHERE key = 'epoch'")


def version() -> Script[str | None]:
    """Return the store's revision, or None without Horae's tables."""
    exists = yield Fetch(_HAS_VERSION)
    found = (yield Fetch(_VERSION)) if exists[0][0] else []
    return str(found[0][0]) if found else None


def needs_migration() -> Script[bool]:
    """Tell whether tables or first rows are missing. Raises StoreTooNew."""
    return needs_upgrade((yield from version())) or not (yield Fetch(_EPOCH))


def first_rows(env: Env) -> ScriptFactory[None]:
    """Return a script that inserts a store's identity, its default namespace and queue; existing rows stay."""

    def script() -> Script[None]:
        now = env.now()
        identity = [("epoch", "1"), ("installation", str(env.new_id())), ("created_at", str(now))]
        yield Insert("store", (("key", "text"), ("value", "text")), identity, "ON CONFLICT DO NOTHING")
        yield Insert(
            "namespaces", (("name", "text"), ("created_at", "bigint")), [("default", now)], "ON CONFLICT DO NOTHING"
        )
        yield Insert(
            "queues",
            (("namespace", "int"), ("name", "text"), ("created_at", "bigint")),
            [(1, "default", now)],
            "ON CONFLICT DO NOTHING",
        )

    return script


def ping() -> Script[None]:
    """Run the cheapest statement."""
    yield Fetch(_PING)


def room() -> Script[None]:
    """Make PostgreSQL write a megabyte into a temporary file beside its tables."""
    yield Fetch(_LITTLE_MEMORY)
    yield Fetch(_MUCH)


def clock() -> Script[Instant]:
    """Return PostgreSQL's clock."""
    now: Instant = (yield Fetch(_CLOCK))[0][0]
    return now


def notify(payload: str) -> Script[None]:
    """Send a hint. Use a transaction without writes: one that notifies takes a database-wide lock when it commits."""
    yield Fetch(_NOTIFY, (payload,))
