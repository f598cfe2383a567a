"""Facts that `horae doctor` reads from a store and judges: its revision, its settings, and causes of delays."""

import shutil

from msgspec import Struct

from horae.store import seed
from horae.store.contract import Store
from horae.store.driver import Driver
from horae.store.migrations.revisions import HEAD
from horae.store.script import Fetch, Script, Statement

_SQLITE = (
    Statement("checkup-library", "SELECT sqlite_version()"),
    Statement("checkup-journal", "PRAGMA journal_mode"),
    Statement("checkup-synchronous", "PRAGMA synchronous"),
)
_SETTINGS = Statement(
    "checkup-settings",
    "SELECT name, setting FROM pg_settings WHERE name IN ('server_version_num', 'server_version', 'fsync',"
    " 'full_page_writes', 'synchronous_commit', 'max_connections', 'autovacuum')",
)
_OLDEST = Statement(
    "checkup-oldest",
    "SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0)::bigint FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL",
)
_SLOTS = Statement("checkup-slots", "SELECT count(*) FROM pg_replication_slots WHERE NOT active AND xmin IS NOT NULL")
_FEEDBACK = Statement("checkup-feedback", "SELECT count(*) FROM pg_stat_replication WHERE backend_xmin IS NOT NULL")
_CONNECTIONS = Statement(
    "checkup-connections", "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
)


class Facts(Struct, frozen=True, kw_only=True):
    """Facts about a store."""

    dialect: str
    version: str | None  # the revision of its schema; None: it has no tables of Horae
    newest: str = HEAD  # the revision that this program needs
    settings: dict[str, str] = {}
    clock_offset: int = 0  # microseconds that the store's clock is ahead of this machine's
    free: int | None = None  # free bytes on the disk of a store in a file

    @property
    def product(self) -> str:
        """Return the database's own version."""
        return self.settings.get("server_version") or self.settings.get("library", "")


async def schema_version(driver: Driver) -> str | None:
    """Return the store's revision, or None if it has no tables of Horae."""
    return await driver.read(seed.version)


async def examine(store: Store) -> Facts:
    """Read all facts; change nothing."""
    now, database = store.env.now(), store.database
    version = await store.read(seed.version)
    if database.dialect == "sqlite":
        free = None if database.path is None else shutil.disk_usage(database.path.parent).free
        return Facts(dialect="sqlite", version=version, settings=await store.write(_sqlite), free=free)
    settings = await store.read(_postgres)
    offset = await database.server_time() - now
    return Facts(dialect=database.dialect, version=version, settings=settings, clock_offset=offset)


def _sqlite() -> Script[dict[str, str]]:
    """Read the settings of the connection that writes; those of the connections that only read do not matter."""
    values = []
    for statement in _SQLITE:
        rows = yield Fetch(statement)
        values.append(str(rows[0][0]))
    return dict(zip(("library", "journal_mode", "synchronous"), values, strict=True))


def _postgres() -> Script[dict[str, str]]:
    settings = {str(name): str(value) for name, value in (yield Fetch(_SETTINGS))}
    for name, statement in (
        ("oldest_snapshot_seconds", _OLDEST),
        ("inactive_slots", _SLOTS),
        ("feedback_standbys", _FEEDBACK),
        ("connections", _CONNECTIONS),
    ):
        settings[name] = str((yield Fetch(statement))[0][0])
    return settings
