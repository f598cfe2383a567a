"""Opening a store by its URL, and the number of connections to open for PostgreSQL."""

from pathlib import Path

from msgspec import Struct

from horae.env import Env
from horae.errors import BadInput
from horae.store.driver import Driver

# One more connection is opened at times: for partitions, migrations, backups, and to check a silent database.
UPKEEP = 1
_FORMS = "Use sqlite:///path/to/horae.db, sqlite:// (in memory) or postgresql://user:password@host/database."


class Connections(Struct, frozen=True, kw_only=True):
    """The connections of one process to PostgreSQL: how many it keeps open, and the URL that bypasses a pooler."""

    hot: int = 4  # connections for frequent operations: submit, claim, report, and reading one execution or job
    cold: int = 4  # connections for all other operations
    # PostgreSQL's own URL, when the store's URL leads to a pooler that switches connections between transactions
    direct: str = ""

    @property
    def most(self) -> int:
        """Return the most connections that one process opens, including the one that listens for hints."""
        return self.hot + self.cold + 1 + UPKEEP


DEFAULT = Connections()


async def open_store_driver(url: str, env: Env, owner: str = "", connections: Connections = DEFAULT) -> Driver:
    """Open the store at a URL; the caller migrates and closes it.

    `owner` describes this process, for the error of other processes that try to open the same SQLite file.
    """
    scheme, found, rest = url.partition("://")
    if scheme == "sqlite" and found:
        return await _sqlite(rest, env, owner)
    if scheme in ("postgresql", "postgres") and found:
        return await _postgres(url, env, connections)
    shown = f"{scheme}://..." if "@" in url else url  # keeps a password secret
    raise BadInput(f"Horae cannot open a store at {shown!r}.", _FORMS, field="store")


async def _sqlite(rest: str, env: Env, owner: str) -> Driver:
    if rest in ("", "/", "/:memory:"):
        from horae.store.sqlite.memory import MemoryDriver

        return MemoryDriver(env)
    if not rest.startswith("/"):
        raise BadInput(f"sqlite://{rest} names a host, and SQLite has none.", _FORMS, field="store")
    from horae.store.sqlite.file import FileDriver

    return await FileDriver.open(Path(rest[1:]), env, owner)


async def _postgres(url: str, env: Env, connections: Connections) -> Driver:
    try:
        import asyncpg  # noqa: F401
    except ImportError:
        raise BadInput(
            "A PostgreSQL store needs asyncpg, which is not installed.", "pip install 'horae[postgres]'", field="store"
        ) from None
    from horae.store.postgres.driver import PostgresDriver

    return await PostgresDriver.open(url, env, connections)
