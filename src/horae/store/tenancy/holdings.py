"""The data of features in a namespace, and its deletion with the namespace or by an erasure.

Installed features count, not enabled ones: data that a feature wrote before it was switched off is deleted, too.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple
from uuid import UUID

from horae.env import Instant
from horae.feature import installed, load
from horae.store.script import Script, Statement

OF_JOBS = "job IN (SELECT id FROM jobs WHERE namespace = $1)"
Batch = Callable[[int, Instant, int], Script[int]]  # erases up to so many rows of a namespace from before an instant


class PendingWork(NamedTuple):
    """Work of a namespace beside executions that an erasure refuses or cancels first."""

    noun: str  # "backfill"
    open: Statement  # the ids of unfinished ones in a namespace from before an instant
    cancel: Callable[[UUID, int, Instant], Script[object]]


class Holdings(NamedTuple):
    """The tables of a feature with data of a namespace. A test fails for a table that neither a feature nor the kernel
    names.
    """

    ends: tuple[Statement, ...] = ()  # run on deletion, with the namespace's id and the instant
    drops: tuple[Statement, ...] = ()  # rows that a deletion of the namespace deletes: see `drops`
    records: tuple[Statement, ...] = ()  # personal data from before an instant: see `records`
    counted: Mapping[str, Batch] = {}  # the same, counted separately under the table's name
    rows: tuple[Statement, ...] = ()  # definitions and their rows: see `rows`; erased before the kernel's rows
    kept: Mapping[str, str] = {}  # tables that stay or are deleted elsewhere, with the reason
    under_way: PendingWork | None = None


@cache
def all_holdings() -> tuple[Holdings, ...]:
    """Return the holdings of all installed features."""
    return tuple(load(feature.holdings) for feature in installed() if feature.holdings)


def drops(*tables: str) -> tuple[Statement, ...]:
    """Return statements that delete all rows of a namespace in these tables."""
    return tuple(Statement(f"drop_{table}", f"DELETE FROM {table} WHERE namespace = $1") for table in tables)


def records(table: str, keys: str, where: str) -> Statement:
    """Return a statement that deletes a batch of a namespace's rows from before an instant, and returns a
    row for each.
    """
    return _some(f"erase_some_{table}", table, keys, where, "$3")


def rows(table: str, keys: str, where: str) -> Statement:
    """Return a statement that deletes a batch of a namespace's rows, and returns a row for each."""
    return _some(f"end_some_{table}", table, keys, where, "$2")


def _some(name: str, table: str, keys: str, where: str, most: str) -> Statement:
    return Statement(
        name,
        f"WITH chosen AS MATERIALIZED (SELECT {keys} FROM {table} WHERE {where} LIMIT {most})"
        f" DELETE FROM {table} WHERE ({keys}) IN (SELECT {keys} FROM chosen) RETURNING {keys.partition(',')[0]}",
    )
