"""A simple connection pool. Nothing is sent to the server when an open connection is taken or returned."""

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Set

import asyncpg

from horae.errors import StoreUnavailable
from horae.store.postgres.faults import reraise

Connect = Callable[[], Awaitable[asyncpg.Connection]]


class Pool:
    """Up to `size` connections, opened when needed. A broken connection is replaced when its turn comes.

    `patience` is the number of seconds that `take` waits while all connections are in use.
    """

    def __init__(self, connect: Connect, size: int, patience: float = 10.0) -> None:
        self.size = size
        self._connect = connect
        self._free = size  # connections that may still be opened
        self._patience = patience
        self._idle: list[asyncpg.Connection] = []
        self._taken: dict[asyncpg.Connection, int] = {}  # connections in use, each with the number of this use
        self._numbers = itertools.count(1)
        self._queue: deque[asyncio.Future[None]] = deque()
        self._promised = 0  # connections reserved for woken waiters that have not run yet; other callers skip them
        self._closed = False
        self._silent: StoreUnavailable | None = None

    async def take(self) -> asyncpg.Connection:
        """Take a connection; callers get connections in the order of their calls. Raises StoreUnavailable."""
        if (reason := self._reason()) is not None:
            raise StoreUnavailable(reason)
        if self._queue or not self._ready():
            await self._wait()
            if (reason := self._reason()) is not None:
                self._wake()  # pass the unused reservation to the next waiter, which gets the same error
                raise StoreUnavailable(reason)
        return self._reuse() or await self._open()

    def give_back(self, connection: asyncpg.Connection) -> None:
        """Return a connection to the pool."""
        self._taken.pop(connection, None)
        if connection.is_closed() or self._closed:
            connection.terminate()
            self._free += 1
        else:
            self._idle.append(connection)
        self._wake()

    def uses(self) -> frozenset[int]:
        """Return the numbers of the current uses. Each time that a connection is taken is a use with a new number."""
        return frozenset(self._taken.values())

    def silence(self, error: StoreUnavailable, waiting: Set[int]) -> None:
        """Terminate idle connections and those whose uses are `waiting`, and fail all callers that wait for one.

        Until `end_silence` is called, new callers fail with the same error.
        """
        self._silent = error
        self.cut(waiting)
        for turn in self._queue:
            if not turn.done():
                turn.set_exception(StoreUnavailable(error.detail))
        self._queue.clear()

    def cut(self, waiting: Set[int], select: Callable[[asyncpg.Connection], bool] = lambda connection: True) -> None:
        """Terminate the connections that `select` accepts, among the idle ones and those whose uses are `waiting`."""
        used = [connection for connection, use in self._taken.items() if use in waiting]
        for connection in filter(select, (*used, *self._idle)):
            connection.terminate()

    def end_silence(self) -> None:
        """Serve callers again, because the database answers again."""
        self._silent = None

    async def close(self) -> None:
        """Close idle connections and terminate the others."""
        self._closed = True
        for connection in self._taken:
            connection.terminate()
        for connection in self._idle:
            await closed(connection)
        self._idle.clear()
        while self._queue:
            self._wake()
        await asyncio.sleep(0)  # asyncio closes terminated connections in the next iteration of the event loop

    def _reason(self) -> str | None:
        """Return the reason why no connection can be taken now, or None."""
        if self._closed:
            return "The store is closed."
        return None if self._silent is None else self._silent.detail

    def _ready(self) -> bool:
        return len(self._idle) + self._free > self._promised

    def _reuse(self) -> asyncpg.Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                self._taken[connection] = next(self._numbers)
                return connection
            self._free += 1
        return None

    async def _open(self) -> asyncpg.Connection:
        self._free -= 1
        try:
            connection = await self._connect()
        except BaseException as error:
            self._free += 1
            self._wake()
            reraise(error)
        self._taken[connection] = next(self._numbers)
        return connection

    async def _wait(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(self._patience):
                await turn
            self._promised -= 1
        except BaseException as error:
            if turn in self._queue:
                self._queue.remove(turn)
            elif turn.done() and not turn.cancelled() and turn.exception() is None:
                self._promised -= 1
                self._wake()
            if isinstance(error, TimeoutError):
                raise StoreUnavailable("Every connection to PostgreSQL is busy.") from error
            raise

    def _wake(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                self._promised += 1
                return


async def closed(connection: asyncpg.Connection) -> None:
    """Close a connection; terminate it if the server does not answer within a second."""
    try:
        await connection.close(timeout=1)
    except Exception:
        connection.terminate()
