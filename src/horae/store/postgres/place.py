"""Where a database is: PostgreSQL's timeline, its cluster and the database in it, as far as it tells."""

from contextlib import nullcontext

import asyncpg
from msgspec import Struct

from horae.store.postgres.hosts import Unfit

_TIMELINE = "CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) ELSE '' END"
_SYSTEM = "(SELECT system_identifier::text FROM pg_control_system())"
_DATABASE = "(SELECT oid::text FROM pg_database WHERE datname = current_database())"
# Not every PostgreSQL has all functions, or lets everybody use them.
_LOOKS = tuple(
    f"SELECT pg_is_in_recovery(), {timeline}, {system}, {_DATABASE}"
    for timeline, system in ((_TIMELINE, _SYSTEM), (_TIMELINE, "''"), ("''", _SYSTEM), ("''", "''"))
)
_MARK = "SELECT value || ' ' || xmin::text FROM store WHERE key = 'place'"
_UNTOLD = (asyncpg.FeatureNotSupportedError, asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedFunctionError)


class Place(Struct, frozen=True):
    """What differs after a failover (the timeline) and in a copy (the others); empty where nobody tells."""

    timeline: str
    system: str
    database: str
    mark: str = ""  # what the store has written down of it: standbys of one primary all begin the same timeline

    def is_before(self, other: "Place") -> bool:
        """Whether this is what `other` was before a failover: its primary of then, which is one no more."""
        return self.system == other.system and "" < self.timeline < other.timeline


async def locate(connection: asyncpg.Connection, timeout: float, *, shared: bool = False) -> Place:
    """Find out where a connection leads. Raises Unfit for a standby.

    A `shared` one is another after every transaction, and a statement takes several steps.
    """
    for look in _LOOKS[:-1]:
        try:
            return await _look(connection, look, timeout, shared)
        except _UNTOLD:
            continue
    return await _look(connection, _LOOKS[-1], timeout, shared)


async def read_mark(connection: asyncpg.Connection, timeout: float, *, shared: bool = False) -> str:
    """Return the store's own note of where it is, and which transaction wrote it; empty before there are tables."""
    try:
        async with connection.transaction() if shared else nullcontext():
            return await connection.fetchval(_MARK, timeout=timeout) or ""
    except asyncpg.UndefinedTableError:
        return ""


async def _look(connection: asyncpg.Connection, look: str, timeout: float, shared: bool) -> Place:
    async with connection.transaction() if shared else nullcontext():
        is_standby, *told = await connection.fetchrow(look, timeout=timeout)
    if is_standby:
        raise Unfit("it is a standby, which takes no writes")
    return Place(*told)
