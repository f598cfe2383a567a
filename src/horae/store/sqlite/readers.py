"""Reads of a file, on connections that cannot write.

A read begins on the event loop's thread, where most reads end within microseconds. A longer read is stopped and
repeated on another thread. It has a time limit there, because SQLite cannot restart its write-ahead log during a read.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from horae.env import Env
from horae.errors import Busy
from horae.store.driver import Before, run, run_async
from horae.store.script import Op, Rows, ScriptFactory
from horae.store.sqlite.connection import Connection, connect
from horae.store.sqlite.faults import reraise
from horae.store.sqlite.library import sqlite3

T = TypeVar("T")

THREADS = 4
INLINE = 0.01  # seconds that a read may block the event loop
CAP = 5.0  # seconds that a read may take on a thread
_STEPS = 2_000  # virtual machine steps between two checks of the clock, about 0.1 ms


class Readers:
    """Runs read-only scripts. All statements of a script see the same snapshot."""

    def __init__(self, path: Path, env: Env, statements: Counter[str]) -> None:
        self._path = path
        self._clock = env.clock
        self._statements = statements
        self._threads = ThreadPoolExecutor(THREADS, "horae-reader")
        self._idle: list[Connection] = []

    async def read(self, make: ScriptFactory[T], before: Before | None) -> T:
        connection = self._take()
        try:
            if before is not None:
                return await self._stopping(connection, make, before)
            try:
                return self._read(connection, make, INLINE)
            except Busy:
                return await self._apart(connection, make)
        finally:
            self._give_back(connection)

    def apart(self, work: Callable[["sqlite3.Connection"], T]) -> T:
        """Run long work on the calling thread, with a new connection that is closed afterwards."""
        raw = connect(self._path)
        try:
            return work(raw)
        finally:
            raw.close()

    def close(self) -> None:
        self._threads.shutdown()
        for connection in self._idle:
            connection.raw.close()

    async def _apart(self, connection: Connection, make: ScriptFactory[T]) -> T:
        """Read on a thread. If the caller is cancelled, the read is interrupted, so that its connection is free."""
        work = asyncio.get_running_loop().run_in_executor(self._threads, self._read, connection, make, CAP)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            connection.raw.interrupt()
            await asyncio.wait([work])
            raise

    def _read(self, connection: Connection, make: ScriptFactory[T], seconds: float) -> T:
        raw, monotonic = connection.raw, self._clock.monotonic
        end = monotonic() + seconds
        raw.set_progress_handler(lambda: monotonic() > end, _STEPS)
        try:
            raw.execute("BEGIN")
            return run(make(), connection.execute)
        except BaseException as error:
            reraise(error)
        finally:
            raw.set_progress_handler(None, 0)
            connection.rollback()

    async def _stopping(self, connection: Connection, make: ScriptFactory[T], before: Before) -> T:
        async def stopping(op: Op) -> Rows:
            await before(op)
            return connection.execute(op)

        try:
            connection.raw.execute("BEGIN")
            return await run_async(make(), stopping)
        finally:
            connection.rollback()

    def _take(self) -> Connection:
        if self._idle:
            return self._idle.pop()
        try:
            raw = connect(self._path)
            raw.execute("PRAGMA query_only = ON")
        except BaseException as error:
            reraise(error)
        return Connection(raw, self._statements)

    def _give_back(self, connection: Connection) -> None:
        if len(self._idle) < THREADS:
            self._idle.append(connection)
        else:
            connection.raw.close()
