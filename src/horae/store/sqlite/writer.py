"""The one writer: a thread that commits whatever is waiting together, with one sync to disk for all of it."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from horae.errors import Busy
from horae.store.driver import REPEATS, Before, run
from horae.store.script import Again, Op, Rows, ScriptFactory
from horae.store.sqlite.connection import Connection
from horae.store.sqlite.faults import in_our_words

BATCH = 256  # scripts in one transaction at most, so that nobody waits long for the others


class Job:
    """A script, whoever waits for it, and what came of it."""

    __slots__ = ("before", "error", "future", "make", "result", "stop")

    def __init__(self, make: ScriptFactory[Any], future: "asyncio.Future[Any]", before: Before | None) -> None:
        self.make = make
        self.future = future
        self.before = before
        self.result: Any = None
        self.error: BaseException | None = None
        self.stop: concurrent.futures.Future[None] | None = None  # the hook it stands in

    def cancel(self) -> None:
        """Nobody waits any more: end it if it has not come to its commit."""
        if self.stop is not None:
            self.stop.cancel()


class _TransactionLost(Exception):
    """SQLite rolled the whole transaction back, not only the script that failed."""


class Writer:
    """Runs scripts in the order they came, many to a transaction; each one's failure is its own."""

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop, committed: Callable[[], None]) -> None:
        self._connection = connection
        self._loop = loop
        self._committed = committed
        self._pending: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="horae-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        self._pending.put(job)

    def finish(self) -> None:
        """Commit what was submitted and end; returns when the thread has."""
        self._pending.put(None)
        self._thread.join()

    def _work(self) -> None:
        going = True
        while going:
            jobs, going = self._take()
            if jobs:
                self._commit(jobs)
                self._loop.call_soon_threadsafe(_resolve, jobs)
                self._committed()

    def _take(self) -> tuple[list[Job], bool]:
        jobs: list[Job] = []
        job = self._pending.get()
        while job is not None:
            if not job.future.cancelled():
                jobs.append(job)
            if len(jobs) >= BATCH:
                return jobs, True
            try:
                job = self._pending.get_nowait()
            except Empty:
                return jobs, True
        return jobs, False

    def _commit(self, jobs: Sequence[Job]) -> None:
        committing = False
        try:
            self._connection.begin()
            for job in jobs:
                self._attempt(job)
            committing = True
            self._connection.commit()
        except BaseException as error:
            self._connection.rollback()
            self._after_loss(jobs, error, committing)

    def _after_loss(self, jobs: Sequence[Job], error: BaseException, committing: bool) -> None:
        """Repeat one by one, so that only the guilty one fails."""
        if len(jobs) > 1:
            for job in jobs:
                job.result = job.error = None
                self._commit([job])
        else:
            cause = error.__cause__ if isinstance(error, _TransactionLost) else error
            jobs[0].error = in_our_words(cause or error, committing)

    def _attempt(self, job: Job) -> None:
        """Run a script inside a savepoint, which it leaves as if it had never run when it fails."""
        raw = self._connection.raw
        for _ in range(REPEATS):
            raw.execute("SAVEPOINT script")
            try:
                job.result = run(job.make(), self._executing(job))
                if job.future.cancelled():
                    raise asyncio.CancelledError
                raw.execute("RELEASE script")
                return
            except BaseException as error:
                if not raw.in_transaction:
                    raise _TransactionLost from error
                raw.execute("ROLLBACK TO script")
                raw.execute("RELEASE script")
                if not isinstance(error, Again):
                    job.error = in_our_words(error)
                    return
        job.error = Busy("The operation kept losing races for the same rows.")

    def _executing(self, job: Job) -> Callable[[Op], Rows]:
        before, execute = job.before, self._connection.execute
        return execute if before is None else stopping(job, before, self._loop, execute)


def stopping(
    job: Job, before: Before, loop: asyncio.AbstractEventLoop, execute: Callable[[Op], Rows]
) -> Callable[[Op], Rows]:
    """Execute ops on this thread, each after the hook has run on the loop's."""

    async def awaited(op: Op) -> None:
        await before(op)

    def stopped(op: Op) -> Rows:
        job.stop = asyncio.run_coroutine_threadsafe(awaited(op), loop)
        job.stop.result()
        return execute(op)

    return stopped


def _resolve(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)
