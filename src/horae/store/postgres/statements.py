"""Run the ops of scripts as PostgreSQL statements. Many rows are sent as one binary array per column."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeGuard

import asyncpg

from horae.store.script import Among, ColumnType, Fetch, ForEach, Insert, Lock, Op, Provided, Rows, Together, with_given

Columns = tuple[tuple[str, ColumnType], ...]

COPIED = 200  # an insert of at least this many rows uses COPY
_TYPES = {"float": "float8"}
# Locks are taken by a statement of their own, so that the snapshot of the next statement has all that the previous
# holders of the locks have committed.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM unnest($1::text[]) WITH ORDINALITY AS n(name, at)"
_LOCK_BESIDE = (
    f"WITH beside AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(hashtextextended($2, 0))) {_LOCK}, beside"
)

_PLACE = re.compile(r"\$(\d+)")


async def execute(connection: asyncpg.Connection, op: Op) -> Rows:
    """Run one op on a connection and return its rows as tuples."""
    if isinstance(op, Lock):
        if op.table:
            await connection.execute(f"LOCK TABLE {op.table} IN EXCLUSIVE MODE")
        else:
            names = sorted(set(op.names))
            await (connection.fetch(_LOCK_BESIDE, names, op.shared) if op.shared else connection.fetch(_LOCK, names))
        return []
    if isinstance(op, Together):
        return await _together(connection, op)
    if isinstance(op, Provided):
        text, params = provided_bound(op)
        return rows(await connection.fetch(text, *params))
    if isinstance(op, Among):
        return rows(await connection.fetch(op.statement.text, op.ids, *op.params)) if op.ids else []
    if not isinstance(op, Fetch) and not op.rows:
        return []
    if is_copied(op):
        return await _copied(connection, op)
    text, params = bound(op)
    return rows(await connection.fetch(text, *params))


async def _together(connection: asyncpg.Connection, op: Together) -> Rows:
    few = all(len(change.rows) == 1 for change in op.acting if isinstance(change, Insert))
    changes = [bound(change, few=few) for change in op.acting if not is_copied(change)]
    for change in op.acting:
        if is_copied(change):
            await _copied(connection, change)
    if changes:
        params = [value for _, values in changes for value in values]
        counts = tuple((text, len(values)) for text, values in changes)
        await connection.fetch(together(counts), *params)
    return []


def is_copied(op: Op) -> TypeGuard[Insert]:
    """Return whether an op is an insert that uses COPY.

    COPY needs a round trip of its own, but only a quarter of the time per row. It cannot handle conflicts or return
    rows.
    """
    return isinstance(op, Insert) and len(op.rows) >= COPIED and not op.conflict and not op.returning


async def _copied(connection: asyncpg.Connection, op: Insert) -> Rows:
    await connection.copy_records_to_table(op.table, columns=[name for name, _ in op.columns], records=op.rows)
    return []


def provided_bound(op: Provided) -> tuple[str, Sequence[Any]]:
    """Return the SQL text of a conditional change and its parameters, which are one array for each column."""
    conditions = tuple((c.statement.text, c.columns) for c in op.conditions if c.rows)
    changes = tuple(
        (c.table, c.columns, c.conflict) if isinstance(c, Insert) else (c.statement.text, c.columns)
        for c in op.changes
        if c.rows
    )
    return provided(conditions, changes), [column for part in op.acting for column in zip(*part.rows, strict=True)]


@cache
def provided(conditions: tuple[tuple[str, Columns], ...], changes: tuple[tuple[Any, ...], ...]) -> str:
    """Build one statement that makes the changes only if each condition finds all of its rows.

    Its result is one row with one boolean: whether the changes were made.
    """
    parts: list[str] = []
    found: list[str] = []
    before = 0
    for i, (text, columns) in enumerate(conditions):
        parts.append(f"condition_{i} AS MATERIALIZED ({_moved(for_each(text, columns), before)})")
        found.append(f"(SELECT count(*) FROM condition_{i}) = cardinality(${before + 1}::{_array(columns[0][1])})")
        before += len(columns)
    parts.append(f"met AS MATERIALIZED (SELECT {' AND '.join(found)} AS all)")
    for i, (what, columns, *conflict) in enumerate(changes):
        names = ", ".join(name for name, _ in columns)
        given = f"SELECT * FROM {_unnest(columns)} AS g({names}) WHERE (SELECT met.all FROM met)"
        if conflict:
            text = f"INSERT INTO {what} ({_names(columns)}) {given} {conflict[0]}"
        else:
            text = with_given(f"WITH given AS ({given})", what)
        parts.append(f"change_{i} AS ({_moved(text, before)})")
        before += len(columns)
    return f"WITH {', '.join(parts)} SELECT met.all FROM met"


def bound(op: Fetch | ForEach | Insert, *, few: bool = True) -> tuple[str, Sequence[Any]]:
    """Return the SQL text of an op and its parameters. With `few`, an insert of a single row has a text of its own.

    If changes are sent together and some insert several rows, all of them use the texts for many rows. Otherwise each
    combination of texts would be a statement with a plan of its own on every connection (for reports, 729 statements
    and 115 MB).
    """
    if isinstance(op, Fetch):
        return op.statement.text, op.params
    if isinstance(op, ForEach):
        return for_each(op.statement.text, op.columns), [*zip(*op.rows, strict=True), *op.params]
    if few and len(op.rows) == 1:
        return insert_one(op.table, op.columns, op.conflict, op.returning), op.rows[0]
    return insert_many(op.table, op.columns, op.conflict, op.returning), list(zip(*op.rows, strict=True))


@cache
def together(changes: tuple[tuple[str, int], ...]) -> str:
    """Join changes, each given as its text and its number of parameters, into one statement.

    All but the last become WITH queries of the last.
    """
    texts: list[str] = []
    before = 0
    for text, count in changes:
        texts.append(_moved(text, before))
        before += count
    *others, last = texts
    if not others:
        return last
    return with_given("WITH " + ", ".join(f"change_{i} AS ({text})" for i, text in enumerate(others)), last)


def _moved(text: str, by: int) -> str:
    return _PLACE.sub(lambda place: f"${int(place[1]) + by}", text) if by else text


def rows(records: list[asyncpg.Record]) -> Rows:
    return [tuple(record) for record in records]


@cache
def for_each(text: str, columns: Columns) -> str:
    """Add a WITH query `given` to a statement; it has the rows that are passed as one array per column."""
    names = ", ".join(name for name, _ in columns)
    return with_given(f"WITH given AS (SELECT * FROM {_unnest(columns)} AS g({names}))", text)


@cache
def insert_one(table: str, columns: Columns, conflict: str, returning: str) -> str:
    places = ", ".join(f"${place}" for place in range(1, len(columns) + 1))
    return f"INSERT INTO {table} ({_names(columns)}) VALUES ({places}) {_tail(conflict, returning)}"


@cache
def insert_many(table: str, columns: Columns, conflict: str, returning: str) -> str:
    return f"INSERT INTO {table} ({_names(columns)}) SELECT * FROM {_unnest(columns)} {_tail(conflict, returning)}"


def _array(kind: ColumnType) -> str:
    return f"{_TYPES.get(kind, kind)}[]"


def _unnest(columns: Columns) -> str:
    arrays = (f"${place}::{_array(kind)}" for place, (_, kind) in enumerate(columns, 1))
    return f"unnest({', '.join(arrays)})"


def _names(columns: Columns) -> str:
    return ", ".join(f'"{name}"' for name, _ in columns)


def _tail(conflict: str, returning: str) -> str:
    return f"{conflict} RETURNING {returning}" if returning else conflict
