"""The nominal fires of a backfill over all versions of its triggers, including times that the ledger does not cover."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from typing import Literal

from msgspec import Struct

from horae.env import Instant
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.decisions.count import count_fires
from horae.model.triggers.decisions.decide import latest, upcoming
from horae.model.triggers.decisions.future_fires import count_open
from horae.model.triggers.decisions.timetable import Timetable
from horae.model.triggers.ledger import TriggerVersion

Place = tuple[Instant, str]  # a position among fires: the instant, and the name of the trigger
# known: the ledger covers the fires; forgotten: their ledger rows were deleted; before: the trigger did not exist
Coverage = Literal["before", "forgotten", "known"]


class Stretch(Struct, frozen=True):
    """The nominal fires of one version, after < fire <= through, and whether the ledger covers them.

    Before its first version a trigger did not exist. The fires of that time are computed from the first version.
    """

    version: TriggerVersion
    after: Instant
    through: Instant
    known: Coverage = "known"

    def first(self) -> Instant | None:
        found = self._next(self.after)
        return None if found is None or found > self.through else found

    def last(self) -> Instant | None:
        found = self._previous(self.through + 1)
        return None if found is None or found <= self.after else found

    def count(self) -> int:
        v = self.version
        if v.calendar is None:
            return count_fires(v.trigger, v.rules, self.after, self.through + 1)
        return count_open(self._timetable(v.calendar), self.after, self.through + 1)

    def forwards(self, place: Place | None) -> Iterator[Instant]:
        """Yield its fires after a place, the oldest first."""
        v, after = self.version, self.after
        if place is not None:
            after = max(after, place[0] - (v.name > place[1]))
        at = self._next(after)
        while at is not None and at <= self.through:
            yield at
            at = self._next(at)

    def backwards(self, place: Place | None) -> Iterator[Instant]:
        """Yield its fires before a place, the newest first."""
        v, before = self.version, self.through + 1
        if place is not None:
            before = min(before, place[0] + (v.name < place[1]))
        at = self._previous(before)
        while at is not None and at > self.after:
            yield at
            at = self._previous(at)

    def _next(self, after: Instant) -> Instant | None:
        """Return the first fire strictly after an instant that the calendar admits."""
        v = self.version
        return upcoming(v.trigger, v.rules, after) if v.calendar is None else self._timetable(v.calendar).next(after)

    def _previous(self, before: Instant) -> Instant | None:
        """Return the last fire strictly before an instant that the calendar admits."""
        v = self.version
        if v.calendar is None:
            return latest(v.trigger, v.rules, before)
        return self._timetable(v.calendar).previous(before)

    def _timetable(self, calendar: Calendar) -> Timetable:
        """Return the timetable of the fires that the calendar admits.

        If the calendar moves several fires of the version to one instant, only the first of them runs.
        """
        begun = self.after if self.known == "before" else self.version.after
        return Timetable(self.version.trigger, self.version.rules, calendar, begun)


def stretches(versions: Iterable[TriggerVersion], since: Instant, until: Instant, known_from: Instant) -> list[Stretch]:
    """Return the stretches of [since, until), ordered by time for each trigger.

    `known_from` is the instant since which the ledger is complete. A time between two versions of a trigger belongs to
    no stretch, because the trigger did not exist then.
    """
    found: list[Stretch] = []
    first: set[str] = set()
    for version in sorted(versions, key=lambda v: (v.name, v.after)):
        if version.name not in first:
            first.add(version.name)
            found += _before(version, since, until, known_from)
        after, through = max(version.after, since - 1), min(version.through, until - 1)
        forgotten = min(max(after, known_from - 1), through)
        found.append(Stretch(version, after, forgotten, "forgotten"))
        found.append(Stretch(version, max(after, forgotten), through))
    return [stretch for stretch in found if stretch.after < stretch.through]


def _before(first: TriggerVersion, since: Instant, until: Instant, known_from: Instant) -> list[Stretch]:
    """Return the stretches before the first stored version.

    After the creation of the job, the trigger may have had earlier versions, which were deleted with the last of their
    ledger rows. So fires between that creation and `known_from` count as forgotten.
    """
    through = min(first.after, until - 1)
    created = max(since - 1, min(first.job_created_at, through))
    forgotten = max(created, min(known_from - 1, through))
    return [
        Stretch(first, since - 1, created, "before"),
        Stretch(first, created, forgotten, "forgotten"),
        Stretch(first, forgotten, through, "before"),
    ]


def next_fires(
    parts: Sequence[Stretch], place: Place | None, limit: int, *, newest_first: bool = False
) -> list[tuple[Instant, Stretch]]:
    """Return the next fires after `place`, in the order of the backfill, of all triggers.

    Fires at the same instant are ordered by the name of the trigger.
    """
    by_name: dict[str, list[Stretch]] = {}
    for part in parts:
        by_name.setdefault(part.version.name, []).append(part)
    lines = [_line(own, place, newest_first) for own in by_name.values()]
    ordered = merge(*lines, key=lambda fire: (fire[0], fire[1].version.name), reverse=newest_first)
    return list(islice(ordered, limit))


def _line(parts: Sequence[Stretch], place: Place | None, newest_first: bool) -> Iterator[tuple[Instant, Stretch]]:
    """Return the fires of one trigger after `place`; stretches that lie before the place are not evaluated."""
    if newest_first:
        rest = [part for part in reversed(parts) if place is None or part.after < place[0]]
        return chain.from_iterable(((at, part) for at in part.backwards(place)) for part in rest)
    rest = [part for part in parts if place is None or part.through >= place[0]]
    return chain.from_iterable(((at, part) for at in part.forwards(place)) for part in rest)


class Outline(Struct, frozen=True, kw_only=True):
    """The number and the range of a backfill's fires."""

    total: int
    before: int  # fires from before their trigger was created
    forgotten: int  # fires that are no longer in the ledger
    first: Instant | None
    last: Instant | None


def outline(parts: Sequence[Stretch]) -> Outline:
    """Count the fires without enumerating them: the cost grows with the number of months, not of fires."""
    counts = [(part.known, part.count()) for part in parts]
    return Outline(
        total=sum(count for _, count in counts),
        before=sum(count for known, count in counts if known == "before"),
        forgotten=sum(count for known, count in counts if known == "forgotten"),
        first=min((at for part in parts if (at := part.first()) is not None), default=None),
        last=max((at for part in parts if (at := part.last()) is not None), default=None),
    )
