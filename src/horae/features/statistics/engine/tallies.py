"""Tallies of spans of several lengths, such as hours and days.

They are added up in memory and written as whole rows, a bounded number at a time. Each row belongs to one writer, which
is an id that this server has chosen. When there are too many tallies in memory, the written ones are dropped, and later
counts go to rows of a new writer. Tallies that are not written yet stay with their first writer, because their rows may
exist already, and a row of another writer would count the same executions again.
"""

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Generic, TypeVar
from uuid import UUID

from horae.env import SECOND, Instant, Micros
from horae.model.executions.tally import HOUR, OutcomeCounts, begin_of
from horae.store.contract import Store
from horae.store.script import Script

MOST_REMEMBERED = 50_000  # tallies in memory
IN_ONE = 500  # the most rows of one transaction, which must not block SQLite's writer for long
AT_ONCE = 5_000  # the most rows of one flush
MOST_LATE: Micros = HOUR * SECOND  # an execution that ended longer ago counts as if it ended this long ago

Of = TypeVar("Of", bound=Hashable)
Tally = TypeVar("Tally", bound=OutcomeCounts)
Key = tuple[Of, int, Instant]  # a job or namespace, the length of a span in seconds, and its beginning
TallyBatch = tuple[UUID, list[tuple[Key[Of], Tally]]]


class Tallies(Generic[Of, Tally]):
    """Tallies of many jobs or namespaces, by spans of several lengths.

    `make` creates an empty tally, `put` writes a writer's rows, and `room` is the most tallies to keep in memory.
    """

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
        self._unwritten: dict[Key[Of], None] = {}  # changed since the last write, first change first

    def add(self, of: Of, at: Instant, happened: Tally) -> None:
        """Add the tally of a minute of a job or namespace to the spans that contain it."""
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
        """Write up to `AT_ONCE` changed tallies; the next flush writes the remaining ones."""
        for _ in range(0, AT_ONCE, IN_ONE):
            if not self._unwritten:
                break
            some = self.next_batch()
            await store.write(lambda: self.put(some))  # noqa: B023
            self.wrote(some)
        self._forget(now)

    def next_batch(self) -> "TallyBatch[Of, Tally]":
        """Return a batch of changed tallies of one writer, beginning with those that changed first."""
        keys = list(islice(self._unwritten, IN_ONE))
        writer = self._known[keys[0]][0] if keys else self._writer
        return writer, [(key, known) for key in keys for owner, known in [self._known[key]] if owner == writer]

    def put(self, some: "TallyBatch[Of, Tally]") -> Script[None]:
        """Write the rows of a batch with their current counts."""
        if some[1]:
            yield from self._put(*some)

    def wrote(self, some: "TallyBatch[Of, Tally]") -> None:
        """Note that the tallies of a batch were written."""
        for key, _ in some[1]:
            self._unwritten.pop(key, None)

    def _forget(self, now: Instant) -> None:
        """Drop written tallies of spans that ended long ago, or all written ones if there are too many.

        A tally that may grow is kept: a new one of the same writer would overwrite its row.
        """
        full = len(self._known) > self._room
        self._known = {
            key: known
            for key, known in self._known.items()
            if key in self._unwritten or (not full and key[2] + key[1] * SECOND > now - max(key[1] * SECOND, MOST_LATE))
        }
        if full:
            self._writer = self._new_id()
