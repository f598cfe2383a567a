"""What runs scripts: the protocol both databases implement, and what their drivers share."""

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
    """Runs a script that changes nothing."""

    async def __call__(self, make: ScriptFactory[T]) -> T: ...


REPEATS = 10  # how often a script may lose a race before its caller is told that the store is busy


class Driver(Protocol):
    """Runs scripts, each in one transaction.

    A connection that cannot be had, breaks, or meets a full or read-only disk raises StoreUnavailable; its
    `fields["unknown"]` is true when the transaction may have been committed all the same. Other errors propagate.
    """

    dialect: str  # of SQL; nothing outside of the store branches on it
    is_shared: bool  # other servers may have the store open, too
    before: Before | None  # awaited before each statement; tests stop there
    retries: int  # how often a deadlock or a serialization failure repeated a script
    statements: Counter[str]  # how often each statement ran, by name
    epoch_met: Topic[None]  # this driver met a new epoch, as after a failover

    async def write(self, make: ScriptFactory[T], *, hot: bool = True) -> T:
        """Run a script in one transaction that is durable when this returns.

        When it raises, nothing of it remains. It starts again from its beginning after a deadlock or `Again`.
        """
        ...

    async def write_between(self, make: ScriptFactory[T]) -> T:
        """Run a script that computes much, as `write` does; other work goes on between its statements."""
        ...

    async def change(self, op: Provided) -> bool:
        """Run a transaction of this one op, durable when this returns; false when a condition failed."""
        ...

    async def rewrite(self, make: ScriptFactory[T]) -> T:
        """Run a script that may change everything, however long it takes, in one transaction as `write` does."""
        ...

    async def read(self, make: ScriptFactory[T], *, snapshot: bool = False, hot: bool = False) -> T:
        """Run a script that changes nothing; with `snapshot` all its statements see the store at one instant.

        A `hot` one is asked all day: it is planned once, by index, as writes are.
        """
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Read]:
        """Many reads of one state, however long they take."""
        ...

    async def notify(self, payload: str) -> None:
        """Send a hint to every listener of every server, this one included. It may be lost."""
        ...

    async def listen(self, callback: Callable[[str], None]) -> None:
        """Call back with every hint from now on, until the driver is closed."""
        ...

    async def server_time(self) -> Instant:
        """The store's clock: PostgreSQL's own, or the machine's wall clock, as somebody may have set it."""
        ...

    async def migrate(self) -> None:
        """Bring the store to this program's version, under a lock. Raises StoreTooNew."""
        ...

    async def ensure_partitions(self, now: Instant) -> None:
        """Make sure that the coming seven days have their partitions."""
        ...

    async def expire(self, before: Instant, batch: int = 1000, longer: Sequence[Longer] = ()) -> int:
        """Forget parcels made and ended before an instant that nothing live needs; tell how many went.

        What is kept for `longer` stays; of the rest, then, only what goes cheaply goes here. A short step: zero means
        that nothing is left to do.
        """
        ...

    async def expire_fires(self, low: Instant, before: Instant, batch: int = 1000) -> int:
        """Forget what became of fires before an instant, unless it was decided since; tell how much went.

        What lies before `low` was looked at in an earlier step. A short step: zero means that nothing is left to do.
        """
        ...

    @property
    def path(self) -> Path | None:
        """The file that is the store, where it is one."""
        ...

    async def copy_file(self, path: Path) -> None:
        """Copy the store as it is to a new file; work goes on. Raises Conflict for a store that is shared."""
        ...

    def tell_owner(self, owner: str) -> None:
        """Name this process to others that try to open a store that is not shared."""
        ...

    async def ping(self) -> None:
        """Prove that the store answers."""
        ...

    async def check_room(self) -> None:
        """Prove that the store's disk takes some more, without a change. Raises StoreUnavailable.

        Writes find room in pages that are there for a while after a disk is full: that some succeed proves nothing.
        """
        ...

    async def close(self) -> None:
        """Finish what was begun and let go of the store."""
        ...


def op_names(op: Op) -> Iterable[str]:
    """What statistics and tests call what an op does."""
    return map(op_name, op.acting) if isinstance(op, Together | Provided) else (op_name(op),)


def op_name(op: Op) -> str:
    """What statistics and tests call an op."""
    if isinstance(op, Insert):
        return f"insert {op.table}"
    if isinstance(op, Together | Provided):
        return " + ".join(op_names(op))
    return "lock" if isinstance(op, Lock) else op.statement.name


def run(script: Script[T], execute: Callable[[Op], Rows]) -> T:
    """Drive a script with a function that executes ops at once."""
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
    """Drive a script with a coroutine function that executes ops."""
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
    """A script of a single conditional change."""

    def script() -> Script[bool]:
        rows = yield op
        return bool(rows[0][0])

    return script


def one(statement: Statement, *params: Any) -> ScriptFactory[Rows]:
    """A script of a single statement."""

    def script() -> Script[Rows]:
        return (yield Fetch(statement, params))

    return script
