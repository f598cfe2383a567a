"""Steps in the user's own database: the result is committed together with the effect, so the effect happens once.

Works with connections of asyncpg, psycopg (sync and async) and sqlite3. They are recognised by the module of their
class, because this module imports none of these libraries. The row of the step is inserted first and locks its key, so
a second attempt that runs at the same time waits for the first. If the connection is in a transaction already, the step
and its row become a part of that transaction, as a savepoint.
"""

from collections.abc import Callable, Generator
from typing import Any
from uuid import UUID

import msgspec

from horae.errors import HoraeError
from horae.model.fleet.protocol import MAX_RESULT
from horae.worker.code.durable import StepMemory, check_name, encode_value
from horae.worker.processes.scripts import FunctionCall, PendingOperation, Script

STEPS_TABLE = """CREATE TABLE IF NOT EXISTS horae_steps (
    execution text NOT NULL,
    name text NOT NULL,
    result text,
    attempt integer NOT NULL,
    at timestamp DEFAULT CURRENT_TIMESTAMP NOT NULL,
    PRIMARY KEY (execution, name)
)"""
CLAIM = (
    "INSERT INTO horae_steps (execution, name, attempt) VALUES ({}, {}, {})"
    " ON CONFLICT (execution, name) DO NOTHING RETURNING name"
)
READ = "SELECT result FROM horae_steps WHERE execution = {} AND name = {}"
KEEP = "UPDATE horae_steps SET result = {} WHERE execution = {} AND name = {}"

DatabaseCalls = Generator[FunctionCall, Any, Any]


class Database:
    """Runs statements and transactions on a connection of psycopg; subclasses do so for the other libraries.

    Its methods are generators: they yield the calls, and the caller runs each and awaits its result if necessary.
    """

    mark = "%s"  # the placeholder of a value in a statement

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def fetch(self, text: str, *values: Any) -> DatabaseCalls:
        """Run a statement; return the first row, if any."""
        cursor = yield FunctionCall(self.connection.execute, (_marked(text, self.mark), values))
        return (yield FunctionCall(cursor.fetchone)) if cursor.description else None

    def begin(self) -> DatabaseCalls:
        """Begin a transaction, or a savepoint in the present one. Return the value to pass to `end` as `leave`."""
        block = self.connection.transaction()
        enter = getattr(block, "__aenter__", None) or block.__enter__
        leave = getattr(block, "__aexit__", None) or block.__exit__
        yield FunctionCall(enter)
        return leave

    def end(self, leave: Any, error: BaseException | None) -> DatabaseCalls:
        """Commit the transaction or savepoint; if there was an error, roll it back."""
        details = (None, None, None) if error is None else (type(error), error, error.__traceback__)
        yield FunctionCall(leave, details)


class AsyncpgDatabase(Database):
    """A connection of asyncpg: placeholders are numbered (`$1`), and one call returns the first row."""

    mark = "$"

    def fetch(self, text: str, *values: Any) -> DatabaseCalls:
        return (yield FunctionCall(self.connection.fetchrow, (_marked(text, self.mark), *values)))


class SqliteDatabase(Database):
    """A connection of sqlite3. Transactions begin and end by statements; BEGIN IMMEDIATE takes the write lock."""

    mark = "?"

    def begin(self) -> DatabaseCalls:
        nested = self.connection.in_transaction
        yield FunctionCall(self.connection.execute, ("SAVEPOINT horae_step" if nested else "BEGIN IMMEDIATE",))
        return nested

    def end(self, leave: Any, error: BaseException | None) -> DatabaseCalls:
        if leave:
            if error is not None:
                yield FunctionCall(self.connection.execute, ("ROLLBACK TO horae_step",))
            yield FunctionCall(self.connection.execute, ("RELEASE horae_step",))
        else:
            yield FunctionCall(self.connection.execute, ("COMMIT" if error is None else "ROLLBACK",))


KINDS: dict[str, type[Database]] = {
    "asyncpg": AsyncpgDatabase,
    "psycopg": Database,
    "sqlite3": SqliteDatabase,
    "pysqlite3": SqliteDatabase,
}


def database_of(connection: Any) -> Database:
    """Return the `Database` for a connection. Raises TypeError for a connection of an unknown library."""
    for kind in type(connection).__mro__:
        found = KINDS.get(kind.__module__.partition(".")[0])
        if found is not None:
            return found(connection)
    raise TypeError(f"{type(connection)} is not a connection of {', '.join(sorted(KINDS))}")


def create_table(connection: Any) -> Script[None]:
    """Create the table `horae_steps`, unless it exists, in a transaction of its own."""
    database = database_of(connection)
    leave = yield from database.begin()
    try:
        yield from database.fetch(STEPS_TABLE)
    except BaseException as error:
        yield from database.end(leave, error)
        raise
    yield from database.end(leave, None)


class Transaction:
    """`ctx.transaction(connection)`: steps that are remembered in the same database that they change."""

    def __init__(
        self,
        connection: Any,
        memo: StepMemory,
        execution: UUID,
        attempt: int,
        pending: Callable[[Script[Any], str], PendingOperation],
    ) -> None:
        self._database = database_of(connection)
        self._memo, self._execution, self._attempt, self._pending = memo, str(execution), attempt, pending

    def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> PendingOperation:
        """Run a function in a transaction that also stores its result.

        After the commit the function is not run again: the step returns the stored result.
        """
        key = self._memo.key(check_name(name))
        return self._pending(self._step(key, FunctionCall(function, args, kwargs)), f"transaction().step({name!r})")

    def create_table(self) -> PendingOperation:
        """Create the table `horae_steps`, unless it exists."""
        return self._pending(create_table(self._database.connection), "transaction().create_table")

    def _step(self, key: str, call: FunctionCall) -> Script[Any]:
        database, place = self._database, (self._execution, key)
        leave = yield from database.begin()
        try:
            result = yield from self._claimed(place, call)
        except BaseException as error:
            yield from database.end(leave, error)
            if "horae_steps" in str(error) and not isinstance(error, HoraeError):
                raise _no_table(error) from error
            raise
        yield from database.end(leave, None)
        return msgspec.json.decode(result)

    def _claimed(self, place: tuple[str, str], call: FunctionCall) -> Script[str | bytes]:
        """Return the stored result; if there is none, run the function while the inserted row locks the key."""
        database = self._database
        if (yield from database.fetch(CLAIM, *place, self._attempt)) is None:
            known = yield from database.fetch(READ, *place)
            text: str = known[0]
            return text
        value = yield call
        result = bytes(encode_value(value, f"The result of step {place[1]!r}", MAX_RESULT)).decode()
        yield from database.fetch(KEEP, result, *place)
        return result


class SyncTransaction:
    """`ctx.sync.transaction(connection)`: the methods of `Transaction` for sync functions."""

    def __init__(self, transaction: Transaction, run: Callable[[PendingOperation], Any]) -> None:
        self._transaction, self._run = transaction, run

    def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._run(self._transaction.step(name, function, *args, **kwargs))

    def create_table(self) -> None:
        self._run(self._transaction.create_table())


def _no_table(error: BaseException) -> HoraeError:
    remedy = "If it is missing, create it with `ctx.transaction(connection).create_table()`."
    return HoraeError(f"The table horae_steps cannot be used: {error}", remedy)


def _marked(text: str, mark: str) -> str:
    """Return a statement with the database's placeholders instead of `{}`; the mark `$` means numbered ones."""
    count = text.count("{}")
    return text.format(*(f"${at + 1}" if mark == "$" else mark for at in range(count)))
