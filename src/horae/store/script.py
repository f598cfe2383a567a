"""Scripts: store operations as generators that yield statements and are sent their rows.

A script decides and names SQL; a driver (`sqlite/`, `postgres/`) runs it inside one transaction. So each operation is
written once for both databases, tests can stop between any two statements, and a driver can restart a script after a
deadlock. SQL is written in PostgreSQL's dialect with `$1` parameters. The SQLite driver leaves out row locks and casts,
which SQLite lacks: its single writer is the lock.
"""

import re
from collections.abc import Callable, Generator, Sequence
from typing import Any, Literal, TypeVar
from uuid import UUID

from msgspec import Struct

_OWN_WITH = re.compile(r"\s*WITH\s+(RECURSIVE\s+)?", re.IGNORECASE)

Row = tuple[Any, ...]
Rows = list[Row]

ColumnType = Literal["uuid", "int", "bigint", "smallint", "text", "bytea", "bool", "float"]


class Statement(Struct, frozen=True):
    """A SQL text with a name for tests, plans and statistics.

    A statement that reads for many given rows `at_once` is a single statement on SQLite, too: it selects from `given`
    and joins tables by their keys.
    """

    name: str
    text: str
    at_once: bool = False
    sqlite: str = ""  # the text for SQLite, if it differs by more than the SQLite driver translates

    @property
    def on_sqlite(self) -> str:
        """Return the text that the SQLite driver translates and runs."""
        return self.sqlite or self.text


class Fetch(Struct, frozen=True):
    """A statement to run; it returns its rows, including those of RETURNING."""

    statement: Statement
    params: tuple[Any, ...] = ()


class ForEach(Struct, frozen=True):
    """A statement to run with given rows; its text names them `given`.

    PostgreSQL runs it once over `unnest`, SQLite once per row unless it reads `at_once`. Rows of RETURNING or SELECT
    are returned together. The text must mean the same either way: each given row acts on its own, in the given order.
    Further parameters follow the given columns as `$k`.
    """

    statement: Statement
    columns: tuple[tuple[str, ColumnType], ...]
    rows: Sequence[Sequence[Any]]
    params: tuple[Any, ...] = ()


class Insert(Struct, frozen=True):
    """Rows to insert; `conflict` may be an ON CONFLICT clause, `returning` a column list of the inserted rows."""

    table: str
    columns: tuple[tuple[str, ColumnType], ...]
    rows: Sequence[Sequence[Any]]
    conflict: str = ""
    returning: str = ""


class Among(Struct, frozen=True):
    """A statement to run over a set of ids at once; its text has `= ANY($1)`, further parameters follow as `$2`.

    Use it to read many rows, and for tables without an index on these ids: it is one statement on SQLite, too, where
    `ForEach` runs one per row.
    """

    statement: Statement
    ids: Sequence[UUID]
    params: tuple[Any, ...] = ()


class Lock(Struct, frozen=True):
    """Transaction-level advisory locks on these names, taken in sorted order. SQLite's writer is the lock.

    The `shared` name is taken first and excludes only transactions that take it as a plain name.

    With `table`: a lock of a table against transactions that select from it FOR KEY SHARE. It waits for earlier ones,
    and later ones see this transaction's changes. A table's lock precedes the statement's snapshot; a row's lock does
    not.
    """

    names: tuple[str, ...] = ()
    shared: str = ""
    table: str = ""


class Together(Struct, frozen=True):
    """Independent changes of different rows, in one round trip.

    They run in no particular order, no change sees the effect of another, and they return no rows.
    """

    changes: Sequence[Fetch | ForEach | Insert]

    @property
    def acting(self) -> list[Fetch | ForEach | Insert]:
        """Return the changes that have rows."""
        return [change for change in self.changes if isinstance(change, Fetch) or change.rows]


class Provided(Struct, frozen=True):
    """Changes that are made only if each condition finds all of its rows, in one round trip.

    The result is one row with one boolean: true if the changes were made. Conditions select and may lock. No change
    sees the effect of another.
    """

    conditions: Sequence[ForEach]
    changes: Sequence[ForEach | Insert]

    @property
    def acting(self) -> list[ForEach | Insert]:
        """Return the conditions and changes that have rows, conditions first."""
        return [op for op in (*self.conditions, *self.changes) if op.rows]


Op = Fetch | ForEach | Insert | Among | Lock | Together | Provided
T = TypeVar("T")
Script = Generator[Op, Rows, T]
ScriptFactory = Callable[[], Script[T]]


class Again(Exception):
    """A script lost an expected race: the driver restarts it in a new transaction."""


def with_given(given: str, text: str) -> str:
    """Prepend `WITH given ...` to a statement that may have a WITH of its own."""
    own = _OWN_WITH.match(text)
    if own is None:
        return f"{given} {text}"
    return f"{given}, {text[own.end() :]}".replace("WITH", "WITH RECURSIVE" if own[1] else "WITH", 1)
