"""The only writer of a file. It commits all pending scripts together, with one sync to disk.

Statements take microseconds each and run on the event loop's thread. Only scripts that are not hot, and commits on a
slow disk, run on a separate thread. That thread must reacquire Python's global interpreter lock after every statement,
which takes very long while the event loop is busy (measured: 5,000 scripts a second beside an idle loop, 3 beside a
busy one).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from horae.env import Clock
from horae.store.driver import Before
from horae.store.script import Op, ScriptFactory
from horae.store.sqlite.checkpoint import Checkpoints
from horae.store.sqlite.connection import Connection
from horae.store.sqlite.job import WriterJob
from horae.store.sqlite.library import sqlite3

T = TypeVar("T")

BATCH = 256  # the most scripts in one transaction
QUICK = 0.0005  # seconds: a commit that takes less is made on the event loop's thread
# Seconds after which a batch is committed, so that neither the event loop nor the first script waits long.
PATIENCE = 0.01


class Writer:
    """Runs scripts in the order of their arrival, many in one transaction. The failure of one does not affect others.

    A script runs inline, which means on the event loop's thread, if it is hot or has a `before` hook. Other scripts run
    alone on a separate thread.
    """

    def __init__(self, connection: Connection, checkpoints: Checkpoints, clock: Clock) -> None:
        self._connection = connection
        self._checkpoints = checkpoints
        self._clock = clock
        self._sync = 0.0  # moving average of the duration of commits, in seconds
        self._pending: deque[WriterJob] = deque()
        self._thread = ThreadPoolExecutor(1, "horae-commit")
        self._task: asyncio.Task[None] | None = None

    async def write(self, make: ScriptFactory[T], before: Before | None, hot: bool) -> T:
        job = WriterJob(make, before, hot)
        self._pending.append(job)
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        result: T = await job.future
        return result

    async def close(self) -> None:
        """Commit pending scripts and stop."""
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def _work(self) -> None:
        try:
            while self._pending:
                if _inline(self._pending[0]):
                    await self._together()
                else:
                    await self._alone(self._pending.popleft())
                await asyncio.sleep(0)
        finally:
            self._task = None
            for job in self._pending:  # scripts are left only if this task was cancelled, when the event loop closes
                job.future.cancel()

    async def _together(self) -> None:
        """Run pending scripts in one transaction until the batch is full, and commit it."""
        jobs: list[WriterJob] = []
        committing = False
        changes = self._connection.raw.total_changes
        try:
            self._begin(jobs)
            await self._run_batch(jobs)
            committing = True
            await self._syncing(self._commit, self._connection.raw.total_changes == changes)
        except BaseException as error:
            self._roll_back()
            await self._after_loss(jobs, error, committing)
        for job in jobs:
            job.resolve()
        if self._checkpoints.due(self._connection.raw.total_changes):
            await self._syncing(self._finish_checkpoint)

    def _begin(self, jobs: list[WriterJob]) -> None:
        try:
            self._connection.begin()
        except BaseException:
            jobs.append(self._pending.popleft())  # so that the first script gets the error
            raise

    async def _run_batch(self, jobs: list[WriterJob]) -> None:
        end = self._clock.monotonic() + PATIENCE
        while self._pending and _inline(self._pending[0]) and len(jobs) < BATCH:
            job = self._pending.popleft()
            if job.future.cancelled():
                continue
            jobs.append(job)
            if job.before is None:
                job.attempt(self._connection)
            else:
                await job.attempt_stopping(self._connection, job.before)
            if self._clock.monotonic() > end:
                return

    async def _after_loss(self, jobs: Sequence[WriterJob], error: BaseException, committing: bool) -> None:
        """After a transaction was lost, repeat its scripts one by one, so that only the cause of the loss fails."""
        if isinstance(error, asyncio.CancelledError):
            for job in jobs:
                job.future.cancel()
            raise error
        if len(jobs) == 1:
            jobs[0].fail(error, committing)
            return
        for job in jobs:
            job.error = None
            await self._alone(job)

    async def _alone(self, job: WriterJob) -> None:
        """Run a script in a transaction of its own, entirely on the separate thread."""
        await self._apart(lambda: self._transact(job))
        job.resolve()

    def _transact(self, job: WriterJob) -> None:
        committing = False
        try:
            self._connection.begin()
            job.attempt(self._connection)
            committing = True
            self._commit()
        except BaseException as error:
            self._roll_back()
            job.fail(error, committing)

    def _commit(self) -> None:
        begun = self._clock.monotonic()
        self._connection.commit()
        self._sync += (self._clock.monotonic() - begun - self._sync) / 8

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.rollback()

    def _finish_checkpoint(self) -> None:
        with suppress(sqlite3.Error):  # a later checkpoint copies the remaining pages
            self._connection.raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    async def _syncing(self, work: Callable[[], None], nothing: bool = False) -> None:
        """Run work that waits for the disk: on the event loop's thread if commits are quick, else on the other thread.

        With `nothing`, the transaction has changed nothing, so that there is no wait.
        """
        if nothing or self._sync < QUICK:
            work()
        else:
            await self._apart(work)

    async def _apart(self, work: Callable[[], T]) -> T:
        """Run work on the separate thread. Nothing else uses the connection meanwhile, because the caller waits."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def breathing(clock: Clock) -> Before:
    """Return a hook that lets the event loop run when a script has blocked it for PATIENCE seconds."""
    end = clock.monotonic() + PATIENCE

    async def breathe(op: Op) -> None:
        nonlocal end
        if clock.monotonic() > end:
            await asyncio.sleep(0)
            end = clock.monotonic() + PATIENCE

    return breathe


def _inline(job: WriterJob) -> bool:
    return job.hot or job.before is not None
