"""Copies of all tables from one store to another, verified by row counts and checksums."""

from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import blake2b
from uuid import UUID

import msgspec
from msgspec import Struct
from sqlalchemy import Table

from horae.env import SECOND, Env, Instant
from horae.errors import Conflict, HoraeError
from horae.model.base.ids import instant_of
from horae.store.driver import Driver, Read, one
from horae.store.fleet import sessions
from horae.store.open import open_store_driver
from horae.store.schema import all_tables as schema
from horae.store.script import ColumnType, Fetch, Insert, Row, Rows, Script, Statement

PAGE = 1000  # rows that are read and written together
HEAVY_PAGE = 50  # the same for the tables in HEAVY, whose rows may have hundreds of kilobytes
HEAVY = {"parcels", "history", "logs", "blobs", "steps", "idempotency"}
OCCUPIED = ("jobs", "parcels", "keys")  # a store with rows in one of these tables counts as not empty
SERVED_FOR = 20 * SECOND  # a server seen within this time counts as running

_WEEK: Instant = 7 * 86_400 * SECOND
_KINDS: dict[str, ColumnType] = {
    "Uuid": "uuid", "Integer": "int", "BigInteger": "bigint", "SmallInteger": "smallint", "Text": "text",
    "LargeBinary": "bytea", "Boolean": "bool", "Double": "float",
}  # fmt: skip
Put = Callable[[Table, Rows], Awaitable[None]]


class TableSum(Struct):
    """The number of rows of a table, and a checksum of the rows that does not depend on their order."""

    rows: int = 0
    checksum: int = 0

    def add(self, rows: Rows) -> None:
        self.rows += len(rows)
        for row in rows:
            digest = blake2b(encoded(row), digest_size=8).digest()
            self.checksum = (self.checksum + int.from_bytes(digest, "big")) & 0xFFFF_FFFF_FFFF_FFFF


Sums = dict[str, TableSum]


async def migrate(source_url: str, target_url: str, env: Env) -> Sums:
    """Copy all tables from one store to an empty one; raise an error unless both have the same rows afterwards."""
    source = await open_store_driver(source_url, env, "horae db migrate")
    try:
        target = await open_store_driver(target_url, env, "horae db migrate")
        try:
            await source.migrate()
            await refuse_served(source, env.now())
            await target.migrate()
            return await copy(source, target)
        finally:
            await target.close()
    finally:
        await source.close()


async def copy(source: Driver, target: Driver) -> Sums:
    """Copy every table to a new store; if the copy fails or differs, delete all rows of the target."""
    await refuse_occupied(target)
    await target.rewrite(clear)
    try:
        async with source.snapshot() as read:
            await make_room(read, target)
            sums = await each_table(read, writer(target))
        await target.rewrite(settle_identities)
        await compare(sums, target)
    except Exception:
        await target.rewrite(clear)
        raise
    return sums


async def each_table(read: Read, put: Put) -> Sums:
    """Read every table page by page and pass each page to `put`; return the sums of the tables."""
    sums: Sums = {}
    for table in schema.metadata.sorted_tables:
        total = sums[str(table.name)] = TableSum()
        async for rows in pages(read, table):
            total.add(rows)
            await put(table, rows)
    return sums


async def compare(sums: Sums, target: Driver) -> None:
    """Read the target; raise an error that names the tables whose sums differ from these."""

    async def nothing(table: Table, rows: Rows) -> None:
        pass

    async with target.snapshot() as read:
        refuse_differing(sums, await each_table(read, nothing))


def sums_of() -> Script[Sums]:
    """Return the sums of all tables as seen by this transaction."""
    sums: Sums = {}
    for table in schema.metadata.sorted_tables:
        total, paging = TableSum(), _Paging(table)
        rows = yield Fetch(paging.first)
        while rows:
            total.add(rows)
            rows = (yield Fetch(paging.later, paging.after(rows))) if len(rows) == paging.size else []
        sums[str(table.name)] = total
    return sums


def refuse_differing(sums: Sums, found: Sums) -> None:
    """Raise an error that names the tables with different sums, if there are any."""
    differing = [name for name in sums if sums[name] != found[name]]
    if differing:
        raise HoraeError(
            f"The copy differs in {', '.join(differing)}.", "Stop every server of both stores and try again."
        )


async def pages(read: Read, table: Table) -> AsyncIterator[Rows]:
    """Yield all rows of a table in pages, in the order of its primary key."""
    paging = _Paging(table)
    rows = await read(one(paging.first))
    while rows:
        yield rows
        rows = await read(one(paging.later, *paging.after(rows))) if len(rows) == paging.size else []


class _Paging:
    """Statements that read a table page by page, in the order of its primary key."""

    def __init__(self, table: Table) -> None:
        self.size = HEAVY_PAGE if table.name in HEAVY else PAGE
        names = ", ".join(f'"{column.name}"' for column in table.columns)
        keys = [column.name for column in table.primary_key.columns]
        order = ", ".join(f'"{key}"' for key in keys)
        marks = ", ".join(f"${place}" for place in range(1, len(keys) + 1))
        rest = f"ORDER BY {order} LIMIT {self.size}"
        self._at = [list(table.columns.keys()).index(key) for key in keys]
        self.first = Statement("first_page", f"SELECT {names} FROM {table.name} {rest}")
        self.later = Statement("page", f"SELECT {names} FROM {table.name} WHERE ({order}) > ({marks}) {rest}")

    def after(self, rows: Rows) -> Row:
        """Return the primary key of the last of these rows, after which the next page begins."""
        return tuple(rows[-1][place] for place in self._at)


def writer(target: Driver) -> Put:
    """Return a function that inserts pages into a store."""

    async def put(table: Table, rows: Rows) -> None:
        def script() -> Script[None]:
            yield Insert(table.name, kinds(table), rows)

        await target.write(script, hot=False)

    return put


def kinds(table: Table) -> tuple[tuple[str, ColumnType], ...]:
    """Return a table's columns in the form of `Insert.columns`."""
    return tuple((column.name, _KINDS[type(column.type).__name__]) for column in table.columns)


def encoded(row: Row) -> bytes:
    """Return a row as bytes that are the same for both databases."""
    return msgspec.msgpack.encode([value.bytes if isinstance(value, UUID) else value for value in row])


async def refuse_occupied(target: Driver, remedy: str = "Name a new file or an empty database.") -> None:
    """Raise Conflict for a store that has jobs, executions or keys."""
    for name in OCCUPIED:
        if await target.read(one(Statement("occupied", f"SELECT 1 FROM {name} LIMIT 1"))):
            raise Conflict(f"The target store is not empty: it has {name}.", remedy)


async def refuse_served(store: Driver, now: Instant) -> None:
    """Raise Conflict for a store with running servers, because their changes during the copy would be lost.

    A SQLite file needs no check: the process that has opened it is its only owner.
    """
    if store.dialect == "sqlite":
        return
    seen = await store.read(lambda: sessions.servers(now - SERVED_FOR))
    if seen:
        places = ", ".join(sorted({server.place for server in seen}))
        remedy = f"Stop it first; a server that was killed counts as running for {SERVED_FOR // SECOND} seconds more."
        raise Conflict(f"A server of this store is running at {places}.", remedy)


def clear() -> Script[None]:
    """Delete all rows, including the first rows of a new store."""
    for table in schema.metadata.sorted_tables:
        yield Fetch(Statement(f"clear_{table.name}", f"DELETE FROM {table.name}"))


async def make_room(read: Read, target: Driver) -> None:
    """Create the partitions of all weeks in which the source has parcels."""
    bounds = Statement(
        "bounds",
        "SELECT (SELECT id FROM parcels ORDER BY id LIMIT 1) AS id,"
        " (SELECT id FROM parcels ORDER BY id DESC LIMIT 1) AS parcel",
    )
    first, last = (await read(one(bounds)))[0]
    if first is not None:
        for at in range(instant_of(first), instant_of(last) + 1, _WEEK):
            await target.ensure_partitions(at)


def settle_identities() -> Script[None]:
    """Set PostgreSQL's sequences to the greatest copied ids, because an INSERT with an id does not advance them.

    SQLite advances its sequences by itself.
    """
    for name in ("namespaces", "queues", "lanes"):
        text = f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), (SELECT greatest(1, max(id)) FROM {name}))"
        yield Fetch(Statement("settle_identity", text, sqlite="SELECT 1"))
