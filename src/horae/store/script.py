"""Scripts: store operations as generators that yield statements and receive their rows.

A script decides which SQL to run; a driver (`sqlite/`, `postgres/`) runs it inside one transaction. So each operation
is written once for both databases, tests can stop a script between any two statements, and a driver can restart it
after a deadlock. SQL is written in PostgreSQL's dialect with `$1` parameters. The SQLite driver leaves out row locks
and casts, because SQLite lacks them. It needs no row locks, because it has a single writer.
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
    """A SQL text with a name, by which tests, query plans and statistics refer to it.

    `at_once`: a `ForEach` runs this statement once for all its rows on SQLite, too, instead of once per row. Such a
    statement selects from `given` and joins tables by their keys.
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
    """A statement to run; the script receives its rows, including those of RETURNING."""

    statement: Statement
    params: tuple[Any, ...] = ()


class ForEach(Struct, frozen=True):
    """A statement to run for many rows of values; its text refers to them as the table `given`.

    PostgreSQL runs it once, with the table made by `unnest`. SQLite runs it once per row, unless it is `at_once`. The
    script receives the rows of RETURNING or SELECT of all these runs together. The text must mean the same either way:
    each given row acts on its own, in the given order. The numbers of `params` follow those of the columns: with three
    columns, the first of `params` is `$4`.
    """

    statement: Statement
    columns: tuple[tuple[str, ColumnType], ...]
    rows: Sequence[Sequence[Any]]
    params: tuple[Any, ...] = ()


class Insert(Struct, frozen=True):
    """Rows to insert; `conflict` is an ON CONFLICT clause, `returning` lists columns of inserted rows to return."""

    table: str
    columns: tuple[tuple[str, ColumnType], ...]
    rows: Sequence[Sequence[Any]]
    conflict: str = ""
    returning: str = ""


class Among(Struct, frozen=True):
    """A statement to run once for a set of ids; its text has `= ANY($1)`, and `params` are numbered from `$2`.

    Use it to read many rows, and for tables without an index on these ids, because SQLite, too, runs it once, while it
    runs the statement of a `ForEach` once per row.
    """

    statement: Statement
    ids: Sequence[UUID]
    params: tuple[Any, ...] = ()


class Lock(Struct, frozen=True):
    """Transaction-level advisory locks on these names, taken in sorted order. SQLite needs none: it has one writer.

    The `shared` name is locked first, in shared mode: this excludes only transactions that have it in `names`.

    With `table`, the table is locked against transactions that select from it FOR KEY SHARE. The lock waits for those
    that have selected before. Those that select later see the changes of this transaction, because a statement locks
    its tables before it takes its snapshot, but its rows only afterwards.
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
        """Return the changes without those that have no rows."""
        return [change for change in self.changes if isinstance(change, Fetch) or change.rows]


class Provided(Struct, frozen=True):
    """Changes that are made only if each condition finds all of its rows, in one round trip.

    The result is one row with one boolean, which is true if the changes were made. Conditions are SELECT statements,
    which may lock rows. No change sees the effect of another.
    """

    conditions: Sequence[ForEach]
    changes: Sequence[ForEach | Insert]

    @property
    def acting(self) -> list[ForEach | Insert]:
        """Return the conditions, then the changes, without those that have no rows."""
        return [op for op in (*self.conditions, *self.changes) if op.rows]


Op = Fetch | ForEach | Insert | Among | Lock | Together | Provided
T = TypeVar("T")
Script = Generator[Op, Rows, T]
ScriptFactory = Callable[[], Script[T]]


class Again(Exception):
    """Raised by a script that lost an expected race, so that the driver restarts it in a new transaction."""


def with_given(given: str, text: str) -> str:
    """Prepend the definition of `given`, which begins with WITH, to a statement that may have a WITH of its own."""
    own = _OWN_WITH.match(text)
    if own is None:
        return f"{given} {text}"
    return f"{given}, {text[own.end() :]}".replace("WITH", "WITH RECURSIVE" if own[1] else "WITH", 1)
