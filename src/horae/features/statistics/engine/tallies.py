"""Tallies of wider spans of one writer: added up in memory, and written as whole rows, a bounded number at a time.

Each row belongs to one writer. When there are too many tallies in memory, the written ones are dropped, and later
counts go to rows of a new writer. Unwritten tallies stay with their first writer: their rows may exist already, and a
second row would count the same again.
"""

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Generic, TypeVar
from uuid import UUID

from horae.env import SECOND, Instant
from horae.model.executions.tally import OutcomeCounts, begin_of
from horae.store.contract import Store
from horae.store.script import Script

MOST_REMEMBERED = 50_000
IN_ONE = 500  # rows of a transaction, which must not occupy SQLite's writer for long
AT_ONCE = 5_000  # rows of a flush

Of = TypeVar("Of", bound=Hashable)
Tally = TypeVar("Tally", bound=OutcomeCounts)
Key = tuple[Of, int, Instant]
TallyBatch = tuple[UUID, list[tuple[Key[Of], Tally]]]


class Tallies(Generic[Of, Tally]):
    """Tallies of many jobs or namespaces, by spans of several lengths."""

    def __init__(
        self,
        spans: tuple[int, ...],
        make: Callable[[], Tally],
        put: "Callable[[UUID, list[tuple[Key[Of], Tally]]], Script[None]]",
        new_id: Callable[[], UUID],
        room: int = MOST_REMEMBERED,
    ) -> None:
        self._spans, self._make, self._put, self._new_id, self._room = spans, make, put, new_id, room
        self._writer = new_id()
        self._known: dict[Key[Of], tuple[UUID, Tally]] = {}
        self._unwritten: dict[Key[Of], None] = {}  # in the order in which they changed first

    def add(self, of: Of, at: Instant, happened: Tally) -> None:
        """Add the tally of a minute."""
        for span in self._spans:
            key = of, span, begin_of(at, span)
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = self._writer, self._make()
            known[1].join(happened)
            self._unwritten[key] = None

    @property
    def is_behind(self) -> bool:
        return bool(self._unwritten)

    async def flush(self, store: Store, now: Instant) -> None:
        """Write changed tallies, at most `AT_ONCE`; the rest is written by the next flush."""
        for _ in range(0, AT_ONCE, IN_ONE):
            if not self._unwritten:
                break
            some = self.next_batch()
            await store.write(lambda: self.put(some))  # noqa: B023
            self.wrote(some)
        self._forget(now)

    def next_batch(self) -> "TallyBatch[Of, Tally]":
        """Return the tallies of one writer that changed first, as many as fit one transaction."""
        keys = list(islice(self._unwritten, IN_ONE))
        writer = self._known[keys[0]][0] if keys else self._writer
        return writer, [(key, known) for key in keys for owner, known in [self._known[key]] if owner == writer]

    def put(self, some: "TallyBatch[Of, Tally]") -> Script[None]:
        """Write rows with their present counts."""
        if some[1]:
            yield from self._put(*some)

    def wrote(self, some: "TallyBatch[Of, Tally]") -> None:
        """Note that these tallies are written."""
        for key, _ in some[1]:
            self._unwritten.pop(key, None)

    def _forget(self, now: Instant) -> None:
        """Drop spans that are over, and all written tallies when there are too many."""
        full = len(self._known) > self._room
        self._known = {
            key: known
            for key, known in self._known.items()
            if key in self._unwritten or (not full and key[2] + key[1] * SECOND > now - key[1] * SECOND)
        }
        if full:
            self._writer = self._new_id()
