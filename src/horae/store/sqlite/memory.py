"""A store in memory. Everything runs on the calling thread without waiting, so that simulations are reproducible."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from horae.env import Env
from horae.errors import Busy
from horae.store import seed
from horae.store.driver import REPEATS, run, run_async
from horae.store.script import Again, Op, Rows, ScriptFactory
from horae.store.sqlite import migrate
from horae.store.sqlite.base import OwnDriver
from horae.store.sqlite.connection import Connection, connect
from horae.store.sqlite.copy import copy_to

T = TypeVar("T")


class MemoryDriver(OwnDriver):
    """Runs each script at once, without waiting.

    Only with a `before` hook, which is awaited, do later callers wait until the earlier script has ended.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.statements: Counter[str] = Counter()
        self._connection = Connection(connect(None), self.statements)
        self._turn = asyncio.Lock()

    async def write(self, make: ScriptFactory[T], *, hot: bool = True) -> T:
        for _ in range(REPEATS):
            try:
                return await self._once(make)
            except Again:
                continue
        raise Busy("The operation conflicted with other transactions too many times.")

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

    async def read(self, make: ScriptFactory[T], *, snapshot: bool = False, hot: bool = False) -> T:
        if self.before is None and not self._turn.locked():
            return run(make(), self._connection.execute)
        async with self._turn:
            return await run_async(make(), self._stopping)

    async def migrate(self) -> None:
        if await self.read(seed.needs_migration):
            migrate.copy_fresh(self._connection.raw)
            await self.write(seed.first_rows(self._env))

    async def copy_file(self, path: Path) -> None:
        copy_to(self._connection.raw, path)

    async def check_room(self) -> None:
        """Do nothing, because a store in memory has no disk."""

    async def ping(self) -> None:
        self._connection.raw.execute("SELECT 1")

    async def close(self) -> None:
        self._connection.raw.close()
