"""A script that shares a transaction with others: it succeeds, or its own changes are rolled back."""

import asyncio
from typing import Any

from horae.errors import Busy
from horae.store.driver import REPEATS, Before, run, run_async
from horae.store.script import Again, Op, Rows, ScriptFactory
from horae.store.sqlite.connection import Connection
from horae.store.sqlite.faults import to_horae_error


class TransactionLost(Exception):
    """SQLite rolled back the whole transaction, not only the changes of the failed script."""


class WriterJob:
    """A script, the future for which its caller waits, and its result or error."""

    __slots__ = ("before", "error", "future", "hot", "make", "result")

    def __init__(self, make: ScriptFactory[Any], before: Before | None, hot: bool) -> None:
        self.make = make
        self.before = before
        self.hot = hot
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        """Pass the result or the error to the caller."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)

    def attempt(self, connection: Connection) -> None:
        """Run the script inside a savepoint; store its failure in `error`. Raises TransactionLost."""
        for _ in range(REPEATS):
            connection.raw.execute("SAVEPOINT script")
            try:
                self.result = run(self.make(), connection.execute)
            except BaseException as error:
                if self._undone(connection, error):
                    return
            else:
                connection.raw.execute("RELEASE script")
                return
        self.error = Busy("The operation conflicted with other transactions too many times.")

    async def attempt_stopping(self, connection: Connection, before: Before) -> None:
        """Do the same as `attempt`, and await a hook before each statement.

        The hook is cancelled when the caller no longer waits.
        """

        async def stopping(op: Op) -> Rows:
            hook = asyncio.ensure_future(before(op))
            self.future.add_done_callback(lambda _: hook.cancel())
            await hook
            return connection.execute(op)

        for _ in range(REPEATS):
            connection.raw.execute("SAVEPOINT script")
            try:
                self.result = await run_async(self.make(), stopping)
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and not self.future.cancelled():
                    raise  # the writer was cancelled, not this script
                if self._undone(connection, error):
                    return
            else:
                connection.raw.execute("RELEASE script")
                return
        self.error = Busy("The operation conflicted with other transactions too many times.")

    def fail(self, error: BaseException, committing: bool) -> None:
        """Store the error that ended the transaction as this script's error."""
        cause = error.__cause__ if isinstance(error, TransactionLost) else error
        self.error = to_horae_error(cause or error, committing)

    def _undone(self, connection: Connection, error: BaseException) -> bool:
        """Roll back the changes of a failed script. Return False if it shall be repeated, because it raised Again."""
        if not connection.raw.in_transaction:
            raise TransactionLost from error
        connection.raw.execute("ROLLBACK TO script")
        connection.raw.execute("RELEASE script")
        if isinstance(error, Again):
            return False
        self.error = to_horae_error(error)
        return True
