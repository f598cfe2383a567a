"""Deferred changes: changes of many exchanges are sent to the store together, in as few statements as possible."""

from collections.abc import Hashable, Iterable, Sequence

from msgspec import structs

from horae.store.script import ForEach, Insert, Script, Together

Change = ForEach | Insert


class Deferred:
    """Independent changes of different rows that are made later.

    The owner makes them before a statement reads rows that they change or changes rows that they insert, and at the end
    of the transaction.
    """

    def __init__(self) -> None:
        self._changes: list[Change] = []

    def add(self, changes: Iterable[Change]) -> None:
        """Add changes."""
        self._changes += changes

    def make(self, *more: Change) -> Script[None]:
        """Make the deferred changes and these."""
        changes, self._changes = [*self._changes, *more], []
        if changes:
            yield Together(merged(changes))


def merged(changes: Sequence[Change]) -> list[Change]:
    """Merge changes of the same kind, so that there are few different statements."""
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
