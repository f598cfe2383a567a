"""The driver protocol that both databases implement, and functions that their drivers share."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from horae.env import Instant
from horae.model.base.topic import Topic
from horae.model.tenancy.namespace import Longer
from horae.store.script import Fetch, Insert, Lock, Op, Provided, Rows, Script, ScriptFactory, Statement, Together

T = TypeVar("T")
Before = Callable[[Op], Awaitable[None]]


class Read(Protocol):
    """A function that runs a read-only script."""

    async def __call__(self, make: ScriptFactory[T]) -> T: ...


REPEATS = 10  # restarts of a script that loses races, before it raises Busy


class StoreDatabase(Protocol):
    """The database behind a store, as the engine sees it: its kind, its clock, hints, expiry, disk and backup."""

    dialect: str  # the dialect of SQL; only the store branches on it
    is_shared: bool  # whether other servers may have the store open
    retries: int  # repetitions of scripts after a deadlock or a serialization failure
    epoch_met: Topic[None]  # published when the store has begun a new epoch, for example after a failover

    async def notify(self, payload: str) -> None:
        """Send a hint to every listener of every server, including this one. Hints may be lost."""
        ...

    async def listen(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with every hint that arrives from now on, until the driver is closed."""
        ...

    async def server_time(self) -> Instant:
        """Return the store's clock: PostgreSQL's, or for SQLite the wall clock of this machine.

        The wall clock jumps when it is set.
        """
        ...

    async def ensure_partitions(self, now: Instant) -> None:
        """Create the partitions of the next seven days if they do not exist. SQLite has no partitions."""
        ...

    async def expire(self, before: Instant, batch: int = 1000, longer: Sequence[Longer] = ()) -> int:
        """Delete parcels that were submitted and ended before an instant, if no live execution needs them.

        Return the number of deleted parcels. Each call deletes at most one batch or one day partition; zero means that
        none is left.

        `longer` has the namespaces with longer retentions, whose parcels stay. If there are any, this deletes only
        whole day partitions, and parcels older than every retention. The sweeper deletes the others, page by page.
        """
        ...

    async def expire_fires(self, low: Instant, before: Instant, batch: int = 1000) -> int:
        """Delete rows of the ledger with fires before an instant, unless they were decided after it.

        Return the number of deleted rows. Each call is a short step; zero means that none is left. Earlier calls have
        deleted the rows before `low`, except those of fires that were decided late.
        """
        ...

    @property
    def path(self) -> Path | None:
        """Return the path of the SQLite file; None for other stores."""
        ...

    async def copy_file(self, path: Path) -> None:
        """Copy the store to a new file while it is in use. Raises Conflict for a shared store."""
        ...

    def tell_owner(self, owner: str) -> None:
        """Describe this process as the owner of a SQLite file, for the error of other processes that try to open it."""
        ...

    async def check_room(self) -> None:
        """Check that the store's disk has room, without changing the store. Raises StoreUnavailable if it has none.

        A successful write would prove nothing: on a full disk, writes still find room in allocated pages for a while.
        """
        ...

    async def close(self) -> None:
        """Finish operations that have begun, and release the store."""
        ...


class Driver(StoreDatabase, Protocol):
    """A runner of scripts, each in one transaction. Code outside the store runs scripts by a Store.

    Raises StoreUnavailable when no connection is available, when one breaks, and when a disk is full or read-only. If
    the transaction may have been committed nevertheless, the error has `fields["unknown"]` set to true. Other errors
    propagate.
    """

    before: Before | None  # awaited before each statement; tests stop scripts here
    statements: Counter[str]  # number of executions of each statement, by name

    async def write(self, make: ScriptFactory[T], *, hot: bool = True) -> T:
        """Run a script in one transaction that is durable when this returns.

        If the script raises, the transaction is rolled back. A deadlock or `Again` restarts the script.

        Set `hot` to False for a script that changes many rows. On PostgreSQL, `hot` writes use connections whose plans
        are cached and always use indexes, and whose statements time out after 10 seconds. Without it, plans depend on
        the sizes of the tables, and the timeout is a minute.
        """
        ...

    async def write_between(self, make: ScriptFactory[T]) -> T:
        """Run a script as `write` does, but let the process do other work between its statements.

        Use it for scripts that compute for long between statements.
        """
        ...

    async def change(self, op: Provided) -> bool:
        """Run a conditional change as a transaction that is durable when this returns.

        Return False when a condition did not find its rows, so that nothing was changed.
        """
        ...

    async def rewrite(self, make: ScriptFactory[T]) -> T:
        """Run a script that may change every row of the store, in one transaction.

        On PostgreSQL, the time limit of a statement is 10 minutes.
        """
        ...

    async def read(self, make: ScriptFactory[T], *, snapshot: bool = False, hot: bool = False) -> T:
        """Run a read-only script; with `snapshot` all its statements see the store at one instant.

        Set `hot` for frequent reads. On PostgreSQL they use the same connections as `hot` writes: query plans are
        cached and always use indexes.
        """
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Read]:
        """Open a snapshot for many reads, however long they take."""
        ...

    async def migrate(self) -> None:
        """Migrate the store to this program's revision, under a lock. Raises StoreTooNew if its revision is newer."""
        ...

    async def ping(self) -> None:
        """Check that the store answers."""
        ...


def op_names(op: Op) -> Iterable[str]:
    """Return the names of the statements of an op (an operation that a script yields), for statistics and tests."""
    return map(op_name, op.acting) if isinstance(op, Together | Provided) else (op_name(op),)


def op_name(op: Op) -> str:
    """Return the name of an op for statistics and tests; it joins the names of several statements by " + "."""
    if isinstance(op, Insert):
        return f"insert {op.table}"
    if isinstance(op, Together | Provided):
        return " + ".join(op_names(op))
    return "lock" if isinstance(op, Lock) else op.statement.name


def run(script: Script[T], execute: Callable[[Op], Rows]) -> T:
    """Run a script; `execute` executes each op that it yields and returns the rows."""
    rows: Rows | None = None
    try:
        while True:
            rows = execute(script.send(rows))  # type: ignore[arg-type]
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        script.close()


async def run_async(script: Script[T], execute: Callable[[Op], Awaitable[Rows]]) -> T:
    """Run a script as `run` does, with a coroutine function that executes the ops."""
    rows: Rows | None = None
    try:
        while True:
            rows = await execute(script.send(rows))  # type: ignore[arg-type]
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        script.close()


def alone(op: Provided) -> ScriptFactory[bool]:
    """Return a script of a single conditional change."""

    def script() -> Script[bool]:
        rows = yield op
        return bool(rows[0][0])

    return script


def one(statement: Statement, *params: Any) -> ScriptFactory[Rows]:
    """Return a script of a single statement."""

    def script() -> Script[Rows]:
        return (yield Fetch(statement, params))

    return script
