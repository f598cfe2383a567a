"""Ops as PostgreSQL statements: sets of rows travel as one binary array per column."""

from functools import cache

import asyncpg

from horae.store.script import ColumnType, Fetch, ForEach, Insert, Lock, Op, Rows
from horae.store.text import with_given

Columns = tuple[tuple[str, ColumnType], ...]

_TYPES = {"float": "float8"}
# A statement of its own: what follows must see what the previous holder of the lock committed.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM unnest($1::text[]) WITH ORDINALITY AS n(name, at)"


async def execute(connection: asyncpg.Connection, op: Op) -> Rows:
    """Run one op on a connection; its rows come back as tuples."""
    if isinstance(op, Fetch):
        return rows(await connection.fetch(op.statement.text, *op.params))
    if isinstance(op, ForEach):
        if not op.rows:
            return []
        text = for_each(op.statement.text, op.columns)
        return rows(await connection.fetch(text, *zip(*op.rows, strict=True), *op.params))
    if isinstance(op, Insert):
        return await _insert(connection, op)
    if isinstance(op, Lock):
        await connection.fetch(_LOCK, sorted(set(op.names)))
        return []
    return rows(await connection.fetch(op.statement.text, op.ids, *op.params)) if op.ids else []


async def _insert(connection: asyncpg.Connection, op: Insert) -> Rows:
    if not op.rows:
        return []
    if len(op.rows) == 1:
        text = insert_one(op.table, op.columns, op.conflict, op.returning)
        return rows(await connection.fetch(text, *op.rows[0]))
    text = insert_many(op.table, op.columns, op.conflict, op.returning)
    return rows(await connection.fetch(text, *zip(*op.rows, strict=True)))


def rows(records: list[asyncpg.Record]) -> Rows:
    return [tuple(record) for record in records]


@cache
def for_each(text: str, columns: Columns) -> str:
    """Join a statement with `given` rows."""
    names = ", ".join(name for name, _ in columns)
    return with_given(f"WITH given AS (SELECT * FROM {_unnest(columns)} AS g({names}))", text)


@cache
def insert_one(table: str, columns: Columns, conflict: str, returning: str) -> str:
    places = ", ".join(f"${place}" for place in range(1, len(columns) + 1))
    return f"INSERT INTO {table} ({_names(columns)}) VALUES ({places}) {_tail(conflict, returning)}"


@cache
def insert_many(table: str, columns: Columns, conflict: str, returning: str) -> str:
    return f"INSERT INTO {table} ({_names(columns)}) SELECT * FROM {_unnest(columns)} {_tail(conflict, returning)}"


def _unnest(columns: Columns) -> str:
    arrays = (f"${place}::{_TYPES.get(kind, kind)}[]" for place, (_, kind) in enumerate(columns, 1))
    return f"unnest({', '.join(arrays)})"


def _names(columns: Columns) -> str:
    return ", ".join(f'"{name}"' for name, _ in columns)


def _tail(conflict: str, returning: str) -> str:
    return f"{conflict} RETURNING {returning}" if returning else conflict
