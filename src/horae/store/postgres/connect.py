"""Open connections to PostgreSQL, with planner settings that make hot operations use their indexes."""

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
# A plan made for a tiny table must suit a million rows, too: index scans and nested loops, in the index's order.
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
# Flush every acknowledged write to disk, whatever the role's default is. A stricter setting of the role stays.
_DURABLE = """
SELECT set_config('synchronous_commit', 'on', {}) WHERE current_setting('synchronous_commit') IN ('off', 'local')"""
# Fails on another timeline than the connection was opened on: after a failover a pooler switches hosts silently.
_SAME = "SELECT 1 / (left(pg_walfile_name(pg_current_wal_lsn()), 8) = '{}')::int"
MOVED = (asyncpg.DivisionByZeroError, asyncpg.ObjectNotInPrerequisiteStateError)

CONNECT = 3.0  # seconds for each step of a new connection to one host
# Keepalives end a connection within seconds when packets are lost, whatever its statement timeout is.
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

    A URL may name several hosts: connections go to the primary, wherever it is in the list.
    A pooler that switches connections between transactions keeps neither settings nor prepared statements. Each
    transaction then begins with its settings (`begin`), and operations that need their own connection bypass the
    pooler.
    """

    def __init__(self, url: str, moved: Moved, connections: Connections = DEFAULT) -> None:
        self.is_shared = bool(connections.direct)
        self._hosts = Hosts(url)
        self._direct = Hosts(connections.direct) if connections.direct else self._hosts
        self._moved = moved
        self._place: DatabasePlace | None = None
        self._pooled = False
        # URL of the host that each connection leads to
        self._led: WeakKeyDictionary[asyncpg.Connection, str] = WeakKeyDictionary()
        # place that each connection leads to
        self._opened: WeakKeyDictionary[asyncpg.Connection, DatabasePlace] = WeakKeyDictionary()
        self._probed: DatabasePlace | None = None  # place of the newest connection

    async def hot(self) -> asyncpg.Connection:
        """Open a connection for hot operations, whose statements and locks time out within seconds."""
        return await (self._connect_shared(15) if self.is_shared else self._connect(_COMMON | _HOT, 15))

    async def cold(self) -> asyncpg.Connection:
        """Open a connection for everything else, with PostgreSQL's usual planner settings."""
        return await (self._connect_shared(90) if self.is_shared else self.listening())

    async def listening(self) -> asyncpg.Connection:
        """Open a cold connection that bypasses any pooler."""
        return await self._connect(_COMMON | _COLD, 90)

    def begin(self, how: str, *, hot: bool) -> str:
        """Return the statement that begins a transaction; on a shared connection it also applies the settings."""
        if not self.is_shared:
            return how
        settings = _COMMON | (_HOT if hot else _COLD)
        timeline = self._place.timeline if self._place else ""
        same = [_SAME.format(timeline)] if timeline else []
        return "; ".join([how, *_set("SET LOCAL", settings), _DURABLE.format("true"), *same])

    @asynccontextmanager
    async def patient(self) -> AsyncIterator[asyncpg.Connection]:
        """Open a connection for maintenance that takes minutes, outside the pools so that no other
        operation waits for it.
        """
        connection = await self._connect(_COMMON | _PATIENT, 900)
        try:
            yield connection
        finally:
            await closed(connection)

    async def plain(self) -> asyncpg.Connection:
        """Open a connection for migrations, with PostgreSQL's own settings."""

        async def attempt(url: str) -> asyncpg.Connection:
            connection = await asyncpg.connect(url, timeout=CONNECT)
            return await self._checked(connection, locate(connection, CONNECT))

        return await self._direct.first(attempt)

    async def _connect(self, settings: dict[str, str], patience: float) -> asyncpg.Connection:
        async def attempt(url: str) -> asyncpg.Connection:
            connection = await self._open(url, {} if self._pooled else settings, patience)
            self._led[connection] = url
            return await self._checked(connection, self._prepare(connection, settings if self._pooled else {}))

        return await self._direct.first(attempt)

    async def _connect_shared(self, patience: float) -> asyncpg.Connection:
        async def attempt(url: str) -> asyncpg.Connection:
            connection = await asyncpg.connect(url, timeout=CONNECT, command_timeout=patience, statement_cache_size=0)
            self._led[connection] = url
            return await self._checked(connection, self._compare(connection, shared=True))

        return await self._hosts.first(attempt)

    async def _checked(self, connection: asyncpg.Connection, checks: Awaitable[object]) -> asyncpg.Connection:
        """Return the connection when it passes its checks; terminate it when it does not."""
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
        """Return whether a connection leads to another host than the one that serves now.

        One URL may lead to several hosts through a proxy, which may keep connections to a primary that hangs and was
        replaced.
        """
        place = self._opened.get(connection)
        is_replaced = self._probed is not None and place is not None and place.is_before(self._probed)
        return is_replaced or self._led.get(connection) != self._hosts.served

    async def probe(self) -> None:
        """Check that a primary answers; ask all hosts at once."""

        async def look(connection: asyncpg.Connection) -> None:
            place = await locate(connection, CONNECT, shared=self.is_shared)
            self._check_current(place)
            self._probed = place

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
            self._pooled = True  # PgBouncer refuses settings in the startup message, but keeps those of a session
            return await self._open(url, {}, patience)

    async def _compare(self, connection: asyncpg.Connection, *, shared: bool = False) -> None:
        """Compare the connection's place with the last one, and report a change before the connection is used."""
        place = await locate(connection, CONNECT, shared=shared)
        place = structs.replace(place, mark=await read_mark(connection, CONNECT, shared=shared))
        self._opened[connection] = place
        if place == self._place:
            return
        if self._place is not None and place.mark:
            self._check_current(place)
            await self._moved(connection, place)
        self._place = place

    def _check_current(self, place: DatabasePlace) -> None:
        """Raise NotPrimary for a former primary."""
        if self._place is not None and place.is_before(self._place):
            raise NotPrimary("it is a former primary, which has been replaced")


def _set(how: str, settings: dict[str, str]) -> list[str]:
    return [f"{how} {name} = '{value}'" for name, value in settings.items()]


def _watch(connection: asyncpg.Connection) -> None:
    """Make the operating system watch the connection, as far as it can."""
    line = connection._transport.get_extra_info("socket")
    if line is None or line.family not in (socket.AF_INET, socket.AF_INET6):
        return
    for level, option, value in _WATCHED:
        if hasattr(socket, option):
            line.setsockopt(getattr(socket, level), getattr(socket, option), value)
