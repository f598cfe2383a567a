"""The data of features in a namespace, and its deletion with the namespace or by an erasure.

Disabled features are included, so that the data that a feature wrote before it was switched off is deleted, too.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple
from uuid import UUID

from horae.env import Instant
from horae.feature import installed, load
from horae.store.script import Script, Statement

OF_JOBS = "job IN (SELECT id FROM jobs WHERE namespace = $1)"
# Erases rows of a namespace that are older than an instant, up to a number; returns the number of erased rows.
EraseBatch = Callable[[int, Instant, int], Script[int]]


class PendingWork(NamedTuple):
    """A kind of work besides executions. An erasure of a namespace is refused while it has such work, or cancels it."""

    noun: str  # such as "backfill"
    open: Statement  # selects the ids of unfinished work in a namespace that began before an instant
    cancel: Callable[[UUID, int, Instant], Script[object]]  # by id and namespace, at an instant


class Holdings(NamedTuple):
    """Statements that end or delete the data of a namespace in the tables of a feature.

    A test fails for a table that is named neither here, for some feature, nor by the kernel.
    """

    ends: tuple[Statement, ...] = ()  # run when the namespace is deleted, with its id and the current instant
    drops: tuple[Statement, ...] = ()  # run when the namespace is deleted; built by the function `drops`
    records: tuple[Statement, ...] = ()  # erase personal data older than an instant; built by the function `records`
    counted: Mapping[
        str, EraseBatch
    ] = {}  # like `records`, but counted separately in the report, under the table's name
    # erase definitions and their rows at the end of an erasure, before the kernel's rows; built by the function `rows`
    rows: tuple[Statement, ...] = ()
    kept: Mapping[str, str] = {}  # tables that stay, or that other code deletes; the value is the reason
    under_way: PendingWork | None = None


@cache
def all_holdings() -> tuple[Holdings, ...]:
    """Return the Holdings of all installed features."""
    return tuple(load(feature.holdings) for feature in installed() if feature.holdings)


def drops(*tables: str) -> tuple[Statement, ...]:
    """Return statements that delete all rows of a namespace in these tables."""
    return tuple(Statement(f"drop_{table}", f"DELETE FROM {table} WHERE namespace = $1") for table in tables)


def records(table: str, keys: str, where: str) -> Statement:
    """Return a statement that deletes a batch of a namespace's rows that are older than an instant.

    It returns one row for each deleted row. Its parameters are the namespace, the instant and the size of the batch.
    """
    return _some(f"erase_some_{table}", table, keys, where, "$3")


def rows(table: str, keys: str, where: str) -> Statement:
    """Return a statement that deletes a batch of a namespace's rows.

    It returns one row for each deleted row. Its parameters are the namespace and the size of the batch.
    """
    return _some(f"end_some_{table}", table, keys, where, "$2")


def _some(name: str, table: str, keys: str, where: str, most: str) -> Statement:
    return Statement(
        name,
        f"WITH chosen AS MATERIALIZED (SELECT {keys} FROM {table} WHERE {where} LIMIT {most})"
        f" DELETE FROM {table} WHERE ({keys}) IN (SELECT {keys} FROM chosen) RETURNING {keys.partition(',')[0]}",
    )
