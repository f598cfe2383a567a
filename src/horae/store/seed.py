"""The first rows of a new store, checks of its revision, and small scripts of the drivers: ping, clock, hints."""

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
_MUCH = Statement("much", "SELECT count(*) FROM generate_series(1, 50000)")  # more rows than fit into `work_mem`
_CLOCK = Statement("clock", "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
_NOTIFY = Statement("notify", "SELECT pg_notify('horae', $1)")
_EPOCH = Statement("epoch", "SELECT value FROM store WHERE key = 'epoch'")


def version() -> Script[str | None]:
    """Return the store's revision, or None if it has no tables of Horae."""
    exists = yield Fetch(_HAS_VERSION)
    found = (yield Fetch(_VERSION)) if exists[0][0] else []
    return str(found[0][0]) if found else None


def needs_migration() -> Script[bool]:
    """Tell whether tables or first rows are missing. Raises StoreTooNew if the revision is newer than the program's."""
    return needs_upgrade((yield from version())) or not (yield Fetch(_EPOCH))


def first_rows(env: Env) -> ScriptFactory[None]:
    """Return a script that inserts the identity of a store, its default namespace and its default queue.

    Rows that exist stay unchanged.
    """

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
    """Make PostgreSQL write a megabyte into a temporary file beside its tables; this fails if the disk is full."""
    yield Fetch(_LITTLE_MEMORY)
    yield Fetch(_MUCH)


def clock() -> Script[Instant]:
    """Return PostgreSQL's clock."""
    now: Instant = (yield Fetch(_CLOCK))[0][0]
    return now


def notify(payload: str) -> Script[None]:
    """Send a hint by NOTIFY.

    Run this in a transaction of its own, because a transaction with a NOTIFY takes a lock of the whole database while
    it commits.
    """
    yield Fetch(_NOTIFY, (payload,))
