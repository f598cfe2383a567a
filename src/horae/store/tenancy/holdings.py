"""What features hold in a namespace, and what becomes of it when the namespace is deleted, or erased.

It goes by what is installed: what a feature wrote before it was switched off goes, too.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple
from uuid import UUID

from horae.env import Instant
from horae.feature import installed, load
from horae.store.script import Script, Statement

OF_JOBS = "job IN (SELECT id FROM jobs WHERE namespace = $1)"
Batch = Callable[[int, Instant, int], Script[int]]  # erases so many rows of a namespace of before an instant


class PendingWork(NamedTuple):
    """What a namespace has under way beside executions: it is refused, or cancelled, before an erasure."""

    noun: str  # "backfill"
    open: Statement  # the ids of those of a namespace of before an instant
    cancel: Callable[[UUID, int, Instant], Script[object]]


class Holdings(NamedTuple):
    """What a feature holds in a namespace, by table. A table that no feature and no part of the kernel names fails a
    test.
    """

    ends: tuple[Statement, ...] = ()  # run when it is deleted, with its number and the instant
    drops: tuple[Statement, ...] = ()  # rows that go when it is deleted: see `drops`
    records: tuple[Statement, ...] = ()  # what names somebody, of before an instant: see `records`
    counted: Mapping[str, Batch] = {}  # the same, counted by itself under the table's name
    rows: tuple[Statement, ...] = ()  # what is defined, or belongs to it: see `rows`; found by what the kernel erases
    kept: Mapping[str, str] = {}  # tables that stay, or go with something else, and why
    under_way: PendingWork | None = None


@cache
def all_holdings() -> tuple[Holdings, ...]:
    """Return what all features hold."""
    return tuple(load(feature.holdings) for feature in installed() if feature.holdings)


def drops(*tables: str) -> tuple[Statement, ...]:
    """Delete all rows of a namespace in these tables."""
    return tuple(Statement(f"drop_{table}", f"DELETE FROM {table} WHERE namespace = $1") for table in tables)


def records(table: str, keys: str, where: str) -> Statement:
    """Delete so many rows of a namespace of before an instant; as many come back."""
    return _some(f"erase_some_{table}", table, keys, where, "$3")


def rows(table: str, keys: str, where: str) -> Statement:
    """Delete so many rows of a namespace; as many come back."""
    return _some(f"end_some_{table}", table, keys, where, "$2")


def _some(name: str, table: str, keys: str, where: str, most: str) -> Statement:
    return Statement(
        name,
        f"WITH chosen AS MATERIALIZED (SELECT {keys} FROM {table} WHERE {where} LIMIT {most})"
        f" DELETE FROM {table} WHERE ({keys}) IN (SELECT {keys} FROM chosen) RETURNING {keys.partition(',')[0]}",
    )
