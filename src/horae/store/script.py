"""A store operation as a script: a generator that yields statements and is sent their rows.

A script decides and names SQL; a driver (`sqlite/`, `postgres/`) runs it inside one transaction. So each move is
written once for both databases, tests can stop between any two statements, and a driver may repeat a script from its
beginning after a deadlock. SQL is written in PostgreSQL's dialect with `$1` parameters; what SQLite does not know
(row locks, casts) the SQLite driver leaves out, because its single writer is the lock.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Literal, TypeVar
from uuid import UUID

from msgspec import Struct

Row = tuple[Any, ...]
Rows = list[Row]

ColumnType = Literal["uuid", "int", "bigint", "smallint", "text", "bytea", "bool", "float"]


class Statement(Struct, frozen=True):
    """One SQL text with a name, so that tests, plans and statistics can speak of it.

    What is read of many given rows `at_once` is one statement on SQLite, too: it selects from what is given, and joins
    it with tables by their keys.
    """

    name: str
    text: str
    at_once: bool = False
    sqlite: str = ""  # the text for SQLite, where it differs by more than the SQLite driver translates

    @property
    def on_sqlite(self) -> str:
        """The text that the SQLite driver translates and runs."""
        return self.sqlite or self.text


class Fetch(Struct, frozen=True):
    """Run a statement; its rows come back (also those of RETURNING)."""

    statement: Statement
    params: tuple[Any, ...] = ()


class ForEach(Struct, frozen=True):
    """Run a statement joined with given rows; the text calls them `given`.

    PostgreSQL runs it once over `unnest`, SQLite once per row unless it is read `at_once`; rows of RETURNING or SELECT
    come back together. The text
    must mean the same either way: each given row acts on its own, in the given order. Further parameters of the
    statement follow as `$k` after the given columns.
    """

    statement: Statement
    columns: tuple[tuple[str, ColumnType], ...]
    rows: Sequence[Sequence[Any]]
    params: tuple[Any, ...] = ()


class Insert(Struct, frozen=True):
    """Insert rows; `conflict` may be an ON CONFLICT clause, `returning` a column list (rows that went in come back)."""

    table: str
    columns: tuple[tuple[str, ColumnType], ...]
    rows: Sequence[Sequence[Any]]
    conflict: str = ""
    returning: str = ""


class Among(Struct, frozen=True):
    """Run a statement over a set of ids in one go; the text says `= ANY($1)`, further parameters follow as `$2`.

    For what is read of many at once, and for tables without an index by these ids: one statement serves all of them,
    where `ForEach` asks SQLite once for each.
    """

    statement: Statement
    ids: Sequence[UUID]
    params: tuple[Any, ...] = ()


class Lock(Struct, frozen=True):
    """Take transaction-level advisory locks on these names, in sorted order; SQLite's writer is the lock.

    What is `shared` comes first, and keeps out only whoever names it.

    Or lock a `table` against whoever selects from it FOR KEY SHARE: transactions that did are waited for, and those
    that come later see what this one commits. A table's lock comes before a statement's snapshot, a row's does not.
    """

    names: tuple[str, ...] = ()
    shared: str = ""
    table: str = ""


class Together(Struct, frozen=True):
    """Changes that touch different rows and need nothing of one another: one round trip, whatever their number.

    They act in no particular order, none sees what another did, and no rows come back.
    """

    changes: Sequence[Fetch | ForEach | Insert]

    @property
    def acting(self) -> list[Fetch | ForEach | Insert]:
        """Those that have something to do."""
        return [change for change in self.changes if isinstance(change, Fetch) or change.rows]


class Provided(Struct, frozen=True):
    """Changes that are made together, provided that each condition finds every row that it is given; one round trip.

    The answer is one row: whether they were made. Conditions select, and may lock; changes see nothing of one another.
    """

    conditions: Sequence[ForEach]
    changes: Sequence[ForEach | Insert]

    @property
    def acting(self) -> list[ForEach | Insert]:
        """What has something to do, conditions first."""
        return [op for op in (*self.conditions, *self.changes) if op.rows]


Op = Fetch | ForEach | Insert | Among | Lock | Together | Provided
T = TypeVar("T")
Script = Generator[Op, Rows, T]
ScriptFactory = Callable[[], Script[T]]


class Again(Exception):
    """A script lost a race it foresaw: repeat it from the beginning in a new transaction."""
