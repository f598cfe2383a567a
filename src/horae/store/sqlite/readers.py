"""Readers of a file: a few connections that cannot write, each read under a time cap so that the log can be reset."""

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from horae.env import Env
from horae.store.driver import run
from horae.store.sqlite.connection import Connection, connect
from horae.store.sqlite.faults import in_our_words
from horae.store.sqlite.writer import Job, stopping

READERS = 4
CAP = 5.0  # seconds one read may take
_STEPS = 20_000  # virtual machine steps between two looks at the clock, about a millisecond


class Readers:
    """Runs scripts that change nothing, each on one snapshot, on threads of its own."""

    def __init__(self, path: Path, env: Env, statements: Counter[str]) -> None:
        self._path = path
        self._clock = env.clock
        self._statements = statements
        self._threads = ThreadPoolExecutor(READERS, "horae-reader")
        self._local = threading.local()
        self._opened: list[Connection] = []

    async def read(self, job: Job) -> Any:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, self._read, job, loop)
        except asyncio.CancelledError:
            job.cancel()
            raise

    def close(self) -> None:
        self._threads.shutdown()
        for connection in self._opened:
            connection.raw.close()

    def _read(self, job: Job, loop: asyncio.AbstractEventLoop) -> Any:
        connection = self._connection()
        execute = connection.execute if job.before is None else stopping(job, job.before, loop, connection.execute)
        end = self._clock.monotonic() + CAP
        try:
            connection.raw.execute("BEGIN")
            connection.raw.set_progress_handler(lambda: self._clock.monotonic() > end, _STEPS)
            return run(job.make(), execute)
        except BaseException as error:
            raise in_our_words(error) from error
        finally:
            connection.raw.set_progress_handler(None, 0)
            connection.rollback()

    def _connection(self) -> Connection:
        found: Connection | None = getattr(self._local, "connection", None)
        if found is None:
            raw = connect(self._path)
            raw.execute("PRAGMA query_only = ON")
            found = self._local.connection = Connection(raw, self._statements)
            self._opened.append(found)
        return found
