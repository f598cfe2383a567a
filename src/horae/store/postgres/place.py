"""The identity of a database: the timeline and the cluster of PostgreSQL and the database's oid, as far as known."""

from contextlib import nullcontext

import asyncpg
from msgspec import Struct

from horae.store.postgres.hosts import NotPrimary

_TIMELINE = "CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) ELSE '' END"
_SYSTEM = "(SELECT system_identifier::text FROM pg_control_system())"
_DATABASE = "(SELECT oid::text FROM pg_database WHERE datname = current_database())"
# Not every PostgreSQL service has all of these functions or permits every role to call them. So these queries are tried
# in turn, from the most to the least information.
_QUERIES = tuple(
    f"SELECT pg_is_in_recovery(), {timeline}, {system}, {_DATABASE}"
    for timeline, system in ((_TIMELINE, _SYSTEM), (_TIMELINE, "''"), ("''", _SYSTEM), ("''", "''"))
)
_MARK = "SELECT value || ' ' || xmin::text FROM store WHERE key = 'place'"
_UNSUPPORTED = (asyncpg.FeatureNotSupportedError, asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedFunctionError)


class DatabasePlace(Struct, frozen=True):
    """The identity of a database. A failover changes the timeline, a copy changes the other fields.

    A field that PostgreSQL does not report is empty.
    """

    timeline: str
    system: str  # the identifier of the cluster
    database: str  # the oid of the database in its cluster
    # The store's own record of its place. The timeline alone does not suffice: if two standbys of a primary are
    # promoted, both begin the same timeline.
    mark: str = ""

    def is_before(self, other: "DatabasePlace") -> bool:
        """Return whether this is the former primary of `other`, before a failover."""
        return self.system == other.system and "" < self.timeline < other.timeline


async def locate(connection: asyncpg.Connection, timeout: float, *, shared: bool = False) -> DatabasePlace:
    """Return the place to which a connection leads. Raises NotPrimary for a standby.

    A `shared` connection (see Connector) may lead to another host in each transaction, so the query runs in a
    transaction. `timeout` is in seconds.
    """
    for query in _QUERIES[:-1]:
        try:
            return await _query(connection, query, timeout, shared)
        except _UNSUPPORTED:
            continue
    return await _query(connection, _QUERIES[-1], timeout, shared)


async def read_mark(connection: asyncpg.Connection, timeout: float, *, shared: bool = False) -> str:
    """Return the store's record of its place with the id of the transaction that wrote it.

    The result is empty for a database without this record or without Horae's tables.
    """
    try:
        async with connection.transaction() if shared else nullcontext():
            return await connection.fetchval(_MARK, timeout=timeout) or ""
    except asyncpg.UndefinedTableError:
        return ""


async def _query(connection: asyncpg.Connection, query: str, timeout: float, shared: bool) -> DatabasePlace:
    async with connection.transaction() if shared else nullcontext():
        is_standby, *columns = await connection.fetchrow(query, timeout=timeout)
    if is_standby:
        raise NotPrimary("it is a standby, which accepts no writes")
    return DatabasePlace(*columns)
