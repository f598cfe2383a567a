"""Open connections to PostgreSQL.

Connections for hot (frequent) operations have planner settings that make statements use their indexes.
"""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

import asyncpg
from msgspec import structs

from horae.store.open import DEFAULT, Connections
from horae.store.postgres.hosts import Hosts, NotPrimary
from horae.store.postgres.place import DatabasePlace, locate, read_mark
from horae.store.postgres.pool import closed

_COMMON = {"application_name": "horae", "jit": "off", "timezone": "UTC"}
_COLD = {"statement_timeout": "60s", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "60s"}
_PATIENT = {"statement_timeout": "10min"}
# A statement is planned once per connection, perhaps while its tables are tiny, and the plan must still be good for a
# million rows. So only index scans in the index's order and nested loops are allowed.
_HOT = {
    "enable_seqscan": "off",
    "enable_sort": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "statement_timeout": "10s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "10s",
}
# Flush each commit to disk before it is acknowledged, even if the role's default is weaker. A stricter default of the
# role stays.
_DURABLE = """
SELECT set_config('synchronous_commit', 'on', {}) WHERE current_setting('synchronous_commit') IN ('off', 'local')"""
# Fails if the database's timeline is no longer the known one: a failover begins a new timeline, and a pooler then
# switches to the new primary silently.
_SAME = "SELECT 1 / (left(pg_walfile_name(pg_current_wal_lsn()), 8) = '{}')::int"
# The errors of this check: another timeline, and a standby, which has no current WAL position.
MOVED = (asyncpg.DivisionByZeroError, asyncpg.ObjectNotInPrerequisiteStateError)

CONNECT = 3.0  # seconds for each step of a new connection to one host
# TCP keepalives end a connection within seconds when packets are lost, even if its statement timeout is longer.
_WATCHED = (
    ("SOL_SOCKET", "SO_KEEPALIVE", 1),
    ("IPPROTO_TCP", "TCP_KEEPIDLE", 2),
    ("IPPROTO_TCP", "TCP_KEEPINTVL", 1),
    ("IPPROTO_TCP", "TCP_KEEPCNT", 2),
    ("IPPROTO_TCP", "TCP_USER_TIMEOUT", 3000),
)

Moved = Callable[[asyncpg.Connection, DatabasePlace], Awaitable[None]]


class Connector:
    """Opens connections to one database, and detects when they lead to another one.

    A URL may name several hosts. Connections go to the host that is the primary, which may be any of them.
    A connection is called shared if the URL leads to a pooler that gives each transaction another connection to
    PostgreSQL. Such a pooler keeps neither settings nor prepared statements. So each transaction begins by applying
    its settings (`begin`), and operations that need a connection of their own bypass the pooler.
    """

    def __init__(self, url: str, moved: Moved, connections: Connections = DEFAULT) -> None:
        self.is_shared = bool(connections.direct)
        self._hosts = Hosts(url)
        self._direct = Hosts(connections.direct) if connections.direct else self._hosts
        self._moved = moved  # awaited when the database has another place than before
        self._place: DatabasePlace | None = None  # the last known place of the database
        self._pooled = False  # a pooler has refused settings in the startup message
        # the URL of each connection's host
        self._url_of: WeakKeyDictionary[asyncpg.Connection, str] = WeakKeyDictionary()
        # the place of each connection's database when the connection was opened
        self._place_of: WeakKeyDictionary[asyncpg.Connection, DatabasePlace] = WeakKeyDictionary()
        self._probed_place: DatabasePlace | None = None  # the place that the last successful probe found

    async def hot(self) -> asyncpg.Connection:
        """Open a connection for hot operations, whose statements and locks time out within seconds."""
        return await (self._connect_shared(15) if self.is_shared else self._connect(_COMMON | _HOT, 15))

    async def cold(self) -> asyncpg.Connection:
        """Open a connection for operations that are not hot, with PostgreSQL's usual planner settings."""
        return await (self._connect_shared(90) if self.is_shared else self.listening())

    async def listening(self) -> asyncpg.Connection:
        """Open a cold connection that bypasses any pooler."""
        return await self._connect(_COMMON | _COLD, 90)

    def begin(self, statement: str, *, hot: bool) -> str:
        """Return a statement that begins a transaction; `statement` is its plain form.

        On a shared connection the returned text also applies the settings and checks the timeline.
        """
        if not self.is_shared:
            return statement
        settings = _COMMON | (_HOT if hot else _COLD)
        timeline = self._place.timeline if self._place else ""
        same = [_SAME.format(timeline)] if timeline else []
        return "; ".join([statement, *_set("SET LOCAL", settings), _DURABLE.format("true"), *same])

    @asynccontextmanager
    async def patient(self) -> AsyncIterator[asyncpg.Connection]:
        """Open a connection for maintenance that takes minutes.

        The connection belongs to no pool, so that no other operation waits for it.
        """
        connection = await self._connect(_COMMON | _PATIENT, 900)
        try:
            yield connection
        finally:
            await closed(connection)

    async def plain(self) -> asyncpg.Connection:
        """Open a connection for migrations, with PostgreSQL's default settings and without time limits."""

        async def attempt(url: str) -> asyncpg.Connection:
            connection = await asyncpg.connect(url, timeout=CONNECT)
            return await self._checked(connection, locate(connection, CONNECT))

        return await self._direct.first(attempt)

    async def _connect(self, settings: dict[str, str], patience: float) -> asyncpg.Connection:
        async def attempt(url: str) -> asyncpg.Connection:
            connection = await self._open(url, {} if self._pooled else settings, patience)
            self._url_of[connection] = url
            return await self._checked(connection, self._prepare(connection, settings if self._pooled else {}))

        return await self._direct.first(attempt)

    async def _connect_shared(self, patience: float) -> asyncpg.Connection:
        async def attempt(url: str) -> asyncpg.Connection:
            connection = await asyncpg.connect(url, timeout=CONNECT, command_timeout=patience, statement_cache_size=0)
            self._url_of[connection] = url
            return await self._checked(connection, self._compare(connection, shared=True))

        return await self._hosts.first(attempt)

    async def _checked(self, connection: asyncpg.Connection, checks: Awaitable[object]) -> asyncpg.Connection:
        """Return the connection if its checks succeed, else terminate it."""
        try:
            _watch(connection)
            await checks
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _prepare(self, connection: asyncpg.Connection, settings: dict[str, str]) -> None:
        await connection.execute("; ".join([*_set("SET", settings), _DURABLE.format("false")]), timeout=CONNECT)
        await self._compare(connection)

    def is_left(self, connection: asyncpg.Connection) -> bool:
        """Return whether a connection leads to a former primary instead of the host that serves now.

        Hosts are compared, and also places: behind a proxy one URL may lead to several hosts, and the proxy may keep
        connections to a primary that hangs and was replaced.
        """
        place = self._place_of.get(connection)
        is_replaced = self._probed_place is not None and place is not None and place.is_before(self._probed_place)
        return is_replaced or self._url_of.get(connection) != self._hosts.served

    async def probe(self) -> None:
        """Check that a primary answers, by connecting to all hosts at once."""

        async def look(connection: asyncpg.Connection) -> None:
            place = await locate(connection, CONNECT, shared=self.is_shared)
            self._check_current(place)
            self._probed_place = place

        async def attempt(url: str) -> None:
            connection = await asyncpg.connect(url, timeout=CONNECT, statement_cache_size=0)
            await closed(await self._checked(connection, look(connection)))

        await self._hosts.any(attempt)

    async def _open(self, url: str, settings: dict[str, str], patience: float) -> asyncpg.Connection:
        try:
            return await asyncpg.connect(
                url,
                timeout=CONNECT,
                command_timeout=patience,
                statement_cache_size=1000,
                max_cached_statement_lifetime=0,
                max_cacheable_statement_size=0,
                server_settings=settings,
            )
        except asyncpg.ProtocolViolationError:
            if not settings:
                raise
            self._pooled = True  # PgBouncer refuses settings in the startup message, but accepts SET in a session
            return await self._open(url, {}, patience)

    async def _compare(self, connection: asyncpg.Connection, *, shared: bool = False) -> None:
        """Compare the connection's place with the last known one, and report a change before the connection is used.

        The first place is only remembered, and so is the place of a database without Horae's tables.
        """
        place = await locate(connection, CONNECT, shared=shared)
        place = structs.replace(place, mark=await read_mark(connection, CONNECT, shared=shared))
        self._place_of[connection] = place
        if place == self._place:
            return
        if self._place is not None and place.mark:
            self._check_current(place)
            await self._moved(connection, place)
        self._place = place

    def _check_current(self, place: DatabasePlace) -> None:
        """Raise NotPrimary if the place is that of a former primary."""
        if self._place is not None and place.is_before(self._place):
            raise NotPrimary("it is a former primary, which has been replaced")


def _set(command: str, settings: dict[str, str]) -> list[str]:
    return [f"{command} {name} = '{value}'" for name, value in settings.items()]


def _watch(connection: asyncpg.Connection) -> None:
    """Make the operating system check the connection by TCP keepalives, as far as it has these options."""
    line = connection._transport.get_extra_info("socket")
    if line is None or line.family not in (socket.AF_INET, socket.AF_INET6):
        return
    for level, option, value in _WATCHED:
        if hasattr(socket, option):
            line.setsockopt(getattr(socket, level), getattr(socket, option), value)
