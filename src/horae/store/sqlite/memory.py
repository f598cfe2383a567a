"""A store in memory: everything runs inline on the calling thread, so a simulation repeats itself exactly."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from horae.env import Env, Instant
from horae.errors import Busy
from horae.model.namespace import Longer
from horae.store import expiry, fire_expiry, seed
from horae.store.driver import REPEATS, Before, Read, alone, run, run_async
from horae.store.script import Again, Op, Provided, Rows, ScriptFactory
from horae.store.sqlite import migrate
from horae.store.sqlite.connection import Connection, connect
from horae.store.sqlite.copy import copy_to

T = TypeVar("T")


class MemoryDriver:
    """Runs scripts at once; only the `before` hook is awaited, and then later callers wait their turn."""

    dialect = "sqlite"

    def __init__(self, env: Env) -> None:
        self.before: Before | None = None
        self.retries = 0
        self.statements: Counter[str] = Counter()
        self._env = env
        self._connection = Connection(connect(None), self.statements)
        self._turn = asyncio.Lock()
        self._listeners: list[Callable[[str], None]] = []

    async def write(self, make: ScriptFactory[T], *, hot: bool = True) -> T:
        for _ in range(REPEATS):
            try:
                return await self._once(make)
            except Again:
                continue
        raise Busy("The operation kept losing races for the same rows.")

    async def _once(self, make: ScriptFactory[T]) -> T:
        connection = self._connection
        if self.before is None and not self._turn.locked():
            return self._transact(lambda: run(make(), connection.execute))
        async with self._turn:
            connection.begin()
            try:
                result = await run_async(make(), self._stopping)
                connection.commit()
                return result
            except BaseException:
                connection.rollback()
                raise

    def _transact(self, work: Callable[[], T]) -> T:
        self._connection.begin()
        try:
            result = work()
            self._connection.commit()
            return result
        except BaseException:
            self._connection.rollback()
            raise

    async def _stopping(self, op: Op) -> Rows:
        if self.before is not None:
            await self.before(op)
        return self._connection.execute(op)

    async def change(self, op: Provided) -> bool:
        return await self.write(alone(op))

    async def rewrite(self, make: ScriptFactory[T]) -> T:
        return await self.write(make, hot=False)

    async def read(self, make: ScriptFactory[T], *, snapshot: bool = False, hot: bool = False) -> T:
        if self.before is None and not self._turn.locked():
            return run(make(), self._connection.execute)
        async with self._turn:
            return await run_async(make(), self._stopping)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Read]:
        """This process alone owns the store: whoever takes a snapshot sees to it that it writes nothing."""
        yield self.read

    async def notify(self, payload: str) -> None:
        for callback in self._listeners:
            callback(payload)

    async def listen(self, callback: Callable[[str], None]) -> None:
        self._listeners.append(callback)

    async def server_time(self) -> Instant:
        return self._env.clock.wall()

    async def migrate(self) -> None:
        if await self.read(seed.needs_migration):
            migrate.copy_fresh(self._connection.raw)
            await self.write(seed.first_rows(self._env))

    async def ensure_partitions(self, now: Instant) -> None:
        """SQLite has none."""

    async def expire(self, before: Instant, batch: int = 1000, longer: Sequence[Longer] = ()) -> int:
        return await self.write(expiry.expire(self.dialect, expiry.surely(before, longer), batch), hot=False)

    async def expire_fires(self, low: Instant, before: Instant, batch: int = 1000) -> int:
        return await self.write(fire_expiry.expire_fires(self.dialect, low, before, batch), hot=False)

    async def copy_file(self, path: Path) -> None:
        copy_to(self._connection.raw, path)

    async def ping(self) -> None:
        self._connection.raw.execute("SELECT 1")

    async def close(self) -> None:
        self._connection.raw.close()
