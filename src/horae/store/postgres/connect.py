"""Connections with the right settings: the hot moves' planner is told what their indexes are for."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg

from horae.store.connections import DEFAULT, Connections
from horae.store.postgres.pool import closed

_COMMON = {"application_name": "horae", "jit": "off", "timezone": "UTC"}
_COLD = {"statement_timeout": "60s", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "60s"}
_PATIENT = {"statement_timeout": "10min"}
# A plan made while a shelf was tiny must be the one for a million rows: by index, nested, in the index's order.
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
# An acknowledged write is on disk, whatever the role's default; a stricter setting of theirs stays.
_DURABLE = """
SELECT set_config('synchronous_commit', 'on', {}) WHERE current_setting('synchronous_commit') IN ('off', 'local')"""
_TIMELINE = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END"

CONNECT = 3.0  # seconds for each step of a new connection
# Packets that nobody acknowledges end a connection within seconds, whatever its statement is allowed to take.
_WATCHED = (
    ("SOL_SOCKET", "SO_KEEPALIVE", 1),
    ("IPPROTO_TCP", "TCP_KEEPIDLE", 2),
    ("IPPROTO_TCP", "TCP_KEEPINTVL", 1),
    ("IPPROTO_TCP", "TCP_KEEPCNT", 2),
    ("IPPROTO_TCP", "TCP_USER_TIMEOUT", 3000),
)

Moved = Callable[[asyncpg.Connection, str], Awaitable[None]]


class Connector:
    """Opens connections to one database, and notices when it is no longer the same one.

    A pooler that gives every transaction another connection keeps no settings and no prepared statements between them:
    each transaction then says its settings (`begin`), and what needs a connection of its own goes past the pooler.
    """

    def __init__(self, url: str, moved: Moved, connections: Connections = DEFAULT) -> None:
        self._url = url
        self._direct = connections.direct or url
        self.is_shared = bool(connections.direct)
        self._moved = moved
        self._timeline: str | None = None
        self._pooled = False

    async def hot(self) -> asyncpg.Connection:
        """For the moves; what they wait for is bounded by seconds."""
        return await (self._connect_shared(15) if self.is_shared else self._connect(_COMMON | _HOT, 15))

    async def cold(self) -> asyncpg.Connection:
        """For everything else; plans as usual."""
        return await (self._connect_shared(90) if self.is_shared else self.listening())

    async def listening(self) -> asyncpg.Connection:
        """As a cold one, and never shared."""
        return await self._connect(_COMMON | _COLD, 90)

    def begin(self, how: str, *, hot: bool) -> str:
        """What a transaction begins with; on a shared connection its settings are part of it, in the same message."""
        if not self.is_shared:
            return how
        settings = _COMMON | (_HOT if hot else _COLD)
        return "; ".join([how, *_set("SET LOCAL", settings), _DURABLE.format("true")])

    @asynccontextmanager
    async def patient(self) -> AsyncIterator[asyncpg.Connection]:
        """For upkeep that may take minutes; its own, so that it keeps nobody waiting for a connection."""
        connection = await self._connect(_COMMON | _PATIENT, 900)
        try:
            yield connection
        finally:
            await closed(connection)

    async def _connect(self, settings: dict[str, str], patience: float) -> asyncpg.Connection:
        connection = await self._open({} if self._pooled else settings, patience)
        try:
            _watch(connection)
            await connection.execute(
                "; ".join([*_set("SET", settings if self._pooled else {}), _DURABLE.format("false")]), timeout=CONNECT
            )
            await self._compare(connection, await timeline_of(connection))
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _connect_shared(self, patience: float) -> asyncpg.Connection:
        connection = await asyncpg.connect(
            self._url, timeout=CONNECT, command_timeout=patience, statement_cache_size=0
        )  # fmt: skip
        try:
            _watch(connection)
            async with connection.transaction():
                timeline = await timeline_of(connection)
            await self._compare(connection, timeline)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def probe(self) -> None:
        """See whether anybody answers."""
        await closed(await asyncpg.connect(self._url, timeout=CONNECT))

    async def _open(self, settings: dict[str, str], patience: float) -> asyncpg.Connection:
        try:
            return await asyncpg.connect(
                self._direct,
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
            self._pooled = True  # PgBouncer takes no settings with the greeting; a session's own it keeps
            return await self._open({}, patience)

    async def _compare(self, connection: asyncpg.Connection, timeline: str | None) -> None:
        """A failover between two connections moves the store to another timeline; nobody uses it untold."""
        if timeline is None or timeline == self._timeline:
            return
        if self._timeline is not None:
            await self._moved(connection, timeline)
        self._timeline = timeline


def _set(how: str, settings: dict[str, str]) -> list[str]:
    return [f"{how} {name} = '{value}'" for name, value in settings.items()]


def _watch(connection: asyncpg.Connection) -> None:
    """Have the operating system watch the line, as far as it can."""
    line = connection._transport.get_extra_info("socket")
    if line is None or line.family not in (socket.AF_INET, socket.AF_INET6):
        return
    for level, option, value in _WATCHED:
        if hasattr(socket, option):
            line.setsockopt(getattr(socket, level), getattr(socket, option), value)


async def timeline_of(connection: asyncpg.Connection) -> str | None:
    """PostgreSQL's timeline, where it tells."""
    try:
        timeline: str | None = await connection.fetchval(_TIMELINE, timeout=CONNECT)
    except (asyncpg.FeatureNotSupportedError, asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedFunctionError):
        return None
    return timeline
