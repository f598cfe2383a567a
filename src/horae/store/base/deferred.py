"""Deferred changes: a transaction collects changes of rows and sends them together, in few statements."""

from collections.abc import Hashable, Iterable, Sequence

from msgspec import structs

from horae.store.script import ForEach, Insert, Script, Together

Change = ForEach | Insert


class Deferred:
    """A collection of independent changes, each of different rows, that are written later in the same transaction.

    The owner calls `make` before any statement that reads rows of these changes or changes rows that they insert, and
    at the end of the transaction.
    """

    def __init__(self) -> None:
        self._changes: list[Change] = []

    def add(self, changes: Iterable[Change]) -> None:
        """Add changes to the collection."""
        self._changes += changes

    def make(self, *more: Change) -> Script[None]:
        """Write the collected changes and `more`, and empty the collection."""
        changes, self._changes = [*self._changes, *more], []
        if changes:
            yield Together(merged(changes))


def merged(changes: Sequence[Change]) -> list[Change]:
    """Merge changes that differ only in their rows, so that fewer statements are sent."""
    kinds: dict[Hashable, list[Change]] = {}
    for change in changes:
        if change.rows:
            kinds.setdefault(_kind(change), []).append(change)
    return [
        same[0] if len(same) == 1 else structs.replace(same[0], rows=[row for change in same for row in change.rows])
        for same in kinds.values()
    ]


def _kind(change: Change) -> Hashable:
    if isinstance(change, Insert):
        return change.table, change.columns, change.conflict, change.returning
    return change.statement, change.columns, change.params
