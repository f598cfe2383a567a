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


class Driver(Protocol):
    """A runner of scripts, each in one transaction.

    Raises StoreUnavailable when no connection is available, when one breaks, and when a disk is full or read-only. Its
    `fields["unknown"]` is true when the transaction may have been committed nevertheless. Other errors propagate.
    """

    dialect: str  # of SQL; only the store branches on it
    is_shared: bool  # whether other servers may have the store open
    before: Before | None  # awaited before each statement; tests stop scripts here
    retries: int  # repetitions of scripts after a deadlock or a serialization failure
    statements: Counter[str]  # number of executions of each statement, by name
    epoch_met: Topic[None]  # the store began a new epoch, as after a failover

    async def write(self, make: ScriptFactory[T], *, hot: bool = True) -> T:
        """Run a script in one transaction that is durable when this returns.

        If the script raises, the transaction is rolled back. A deadlock or `Again` restarts the script.
        """
        ...

    async def write_between(self, make: ScriptFactory[T]) -> T:
        """Run a script with long computations, as `write` does; the process does other work between its statements."""
        ...

    async def change(self, op: Provided) -> bool:
        """Run this op as a transaction that is durable when this returns; return False when a condition failed."""
        ...

    async def rewrite(self, make: ScriptFactory[T]) -> T:
        """Run a script that may change everything, in one transaction without a time limit."""
        ...

    async def read(self, make: ScriptFactory[T], *, snapshot: bool = False, hot: bool = False) -> T:
        """Run a read-only script; with `snapshot` all its statements see the store at one instant.

        A `hot` read is frequent: it is planned once, by index, as writes are.
        """
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Read]:
        """Open a snapshot for many reads, however long they take."""
        ...

    async def notify(self, payload: str) -> None:
        """Send a hint to every listener of every server, including this one. Hints may be lost."""
        ...

    async def listen(self, callback: Callable[[str], None]) -> None:
        """Call back with every hint from now on, until the driver is closed."""
        ...

    async def server_time(self) -> Instant:
        """Return the store's clock: PostgreSQL's own, or the machine's wall clock, which may have been set."""
        ...

    async def migrate(self) -> None:
        """Migrate the store to this program's revision, under a lock. Raises StoreTooNew."""
        ...

    async def ensure_partitions(self, now: Instant) -> None:
        """Make sure that the partitions of the next seven days exist."""
        ...

    async def expire(self, before: Instant, batch: int = 1000, longer: Sequence[Longer] = ()) -> int:
        """Delete parcels that were made and ended before an instant and that nothing live needs; return their number.

        Parcels that namespaces retain for `longer` stay. If there are such namespaces, only parcels that are cheap to
        delete are deleted here. Each call is a short step; zero means that nothing is left.
        """
        ...

    async def expire_fires(self, low: Instant, before: Instant, batch: int = 1000) -> int:
        """Delete the ledger's rows before an instant, unless they were decided since; return their number.

        Rows before `low` were deleted in an earlier step. Each call is a short step; zero means that nothing is left.
        """
        ...

    @property
    def path(self) -> Path | None:
        """Return the store's file, if it is a file."""
        ...

    async def copy_file(self, path: Path) -> None:
        """Copy the store to a new file while it is in use. Raises Conflict for a shared store."""
        ...

    def tell_owner(self, owner: str) -> None:
        """Record the name of this process, for processes that try to open a store that is not shared."""
        ...

    async def ping(self) -> None:
        """Check that the store answers."""
        ...

    async def check_room(self) -> None:
        """Check that the store's disk has room, without a change. Raises StoreUnavailable.

        A successful write proves nothing: on a full disk, writes still find room in allocated pages for a while.
        """
        ...

    async def close(self) -> None:
        """Finish operations that have begun, and release the store."""
        ...


def op_names(op: Op) -> Iterable[str]:
    """Return the names of an op's statements, for statistics and tests."""
    return map(op_name, op.acting) if isinstance(op, Together | Provided) else (op_name(op),)


def op_name(op: Op) -> str:
    """Return an op's name for statistics and tests."""
    if isinstance(op, Insert):
        return f"insert {op.table}"
    if isinstance(op, Together | Provided):
        return " + ".join(op_names(op))
    return "lock" if isinstance(op, Lock) else op.statement.name


def run(script: Script[T], execute: Callable[[Op], Rows]) -> T:
    """Run a script with a function that executes ops at once."""
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
    """Run a script with a coroutine function that executes ops."""
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
