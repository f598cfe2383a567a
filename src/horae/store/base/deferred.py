"""Changes that are not made yet: those of many exchanges go to the store together, in as few statements as can be."""

from collections.abc import Hashable, Iterable, Sequence

from msgspec import structs

from horae.store.script import ForEach, Insert, Script, Together

Change = ForEach | Insert


class Deferred:
    """Changes that touch different rows and need nothing of one another.

    They are made before anything is read that they change, before anything changes what they put down, and at the end.
    """

    def __init__(self) -> None:
        self._changes: list[Change] = []

    def add(self, changes: Iterable[Change]) -> None:
        """Make these with the rest."""
        self._changes += changes

    def make(self, *more: Change) -> Script[None]:
        """Make them, and some more."""
        changes, self._changes = [*self._changes, *more], []
        if changes:
            yield Together(merged(changes))


def merged(changes: Sequence[Change]) -> list[Change]:
    """Changes of one kind as one, with the rows of all: else every number of them would be a statement of its own."""
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
