"""Compiled calendars, which answer three questions: is it open, when does it open next, when was it last open.

Time is divided into buckets of about three months. The openings of a bucket are computed once and cached, so an answer
costs one search in a sorted list. Searches cover the years 1970 to 2200 and return None beyond them. Openings begin and
end at whole seconds.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, assert_never

from horae.env import SECOND, Instant
from horae.model.triggers.calendars.intervals import Intervals, difference_of, intersection_of, union_of
from horae.model.triggers.calendars.values import (
    Business,
    Dates,
    Exclusion,
    Hours,
    Intersection,
    Reference,
    Times,
    Union,
    Windows,
)
from horae.model.triggers.calendars.wall import open_in
from horae.model.triggers.cron.zone import BUCKET_BITS

BITS = 23  # a bucket has 2**23 seconds (97 days); a bucket of `cron.zone` consists of a whole number of these
FIRST_BUCKET, LAST_BUCKET = -1, (217 << BUCKET_BITS - BITS) - 1  # from before 1970 to after the year 2200
MOST_KEPT = 200_000  # openings and buckets together

BucketOpenings = Callable[[int], Intervals]


class Opening(NamedTuple):
    """An open interval from `start` to before `end`."""

    start: Instant
    end: Instant


class Calendar:
    """A compiled calendar: a pure function of time that caches its openings.

    Maintenance windows use it too, to find whether they are open now and until when.
    """

    __slots__ = ("_kept", "_part", "_size", "name")

    def __init__(self, part: BucketOpenings, name: str = "") -> None:
        self._part, self.name = part, name
        self._kept: dict[int, Intervals] = {}
        self._size = 0

    def bucket(self, number: int) -> Intervals:
        """Return the openings in one bucket of UTC seconds."""
        if not FIRST_BUCKET <= number <= LAST_BUCKET:
            return ()
        found = self._kept.get(number)
        if found is None:
            found = self._part(number)
            if self._size > MOST_KEPT:
                self._kept, self._size = {}, 0
            self._kept[number] = found
            self._size += 1 + len(found)
        return found

    def is_open(self, at: Instant) -> bool:
        """Return whether the calendar is open at an instant."""
        second = at // SECOND
        openings = self.bucket(second >> BITS)
        place = bisect_right(openings, (second, _ENDLESS)) - 1
        return place >= 0 and second < openings[place][1]

    def next_open(self, at: Instant) -> Instant | None:
        """Return the first open instant at or after `at`, or None if it never opens."""
        second = at // SECOND
        first = second >> BITS
        for number in range(max(first, FIRST_BUCKET), LAST_BUCKET + 1):
            openings = self.bucket(number)
            place = bisect_right(openings, (second, _ENDLESS)) - 1
            if place >= 0 and second < openings[place][1]:
                return max(at, openings[place][0] * SECOND)
            if place + 1 < len(openings):
                return openings[place + 1][0] * SECOND
        return None

    def next_closed(self, at: Instant) -> Instant | None:
        """Return the first closed instant at or after `at`, or None if it never closes."""
        second = at // SECOND
        first = second >> BITS
        if first > LAST_BUCKET:
            return at
        for number in range(first, LAST_BUCKET + 1):
            openings = self.bucket(number)
            place = bisect_right(openings, (second, _ENDLESS)) - 1
            if place < 0 or second >= openings[place][1]:
                return max(at, second * SECOND)
            second = openings[place][1]
            if second < (number + 1) << BITS:
                return second * SECOND
        return None

    def last_open(self, at: Instant) -> Instant | None:
        """Return the last open instant at or before `at`, or None if it was never open.

        The answer is `at` itself or an earlier whole second.
        """
        second = at // SECOND
        first = second >> BITS
        for number in range(min(first, LAST_BUCKET), FIRST_BUCKET - 1, -1):
            openings = self.bucket(number)
            place = bisect_right(openings, (second, _ENDLESS)) - 1
            if place >= 0:
                return at if second < openings[place][1] else (openings[place][1] - 1) * SECOND
        return None

    def last_closed(self, at: Instant) -> Instant | None:
        """Return the last closed instant at or before `at`, or None if it was never closed.

        The answer is `at` itself or an earlier whole second.
        """
        second = at // SECOND
        first = second >> BITS
        for number in range(first, FIRST_BUCKET - 1, -1):
            openings = self.bucket(number)
            place = bisect_right(openings, (second, _ENDLESS)) - 1
            if place < 0 or second >= openings[place][1]:
                return at if second == at // SECOND else second * SECOND
            second = openings[place][0] - 1
            if second >= number << BITS:
                return second * SECOND
        return None

    def openings(self, after: Instant, before: Instant) -> Iterator[Opening]:
        """Yield the openings that overlap [after, before), in order and at their full length."""
        start = self.next_open(after)
        if start == after:
            closed = self.last_closed(after)
            start = FIRST if closed is None else closed // SECOND * SECOND + SECOND
        while start is not None and start < before:
            end = self.next_closed(start)
            if end is None:
                yield Opening(start, LAST)
                return
            yield Opening(start, end)
            start = self.next_open(end)


_ENDLESS = 1 << 62
FIRST: Instant = (FIRST_BUCKET << BITS) * SECOND
LAST: Instant = ((LAST_BUCKET + 1) << BITS) * SECOND


def compile_times(times: Times, others: Mapping[str, Calendar], name: str = "") -> Calendar:
    """Compile a definition. `others` has the calendars that it refers to, by name."""
    return Calendar(_part(times, others), name)


def _part(times: Times, others: Mapping[str, Calendar]) -> BucketOpenings:
    if isinstance(times, Business | Dates | Hours):
        return lambda bucket: open_in(times, *_bounds(bucket))
    if isinstance(times, Windows):
        seconds = union_of((-(-each.start // SECOND), -(-each.end // SECOND)) for each in times.windows)
        return lambda bucket: intersection_of((_bounds(bucket),), seconds)
    if isinstance(times, Reference):
        return others[times.name].bucket
    if isinstance(times, Union):
        return _any_of([_part(member, others) for member in times.members])
    if isinstance(times, Intersection):
        return _all_of([_part(member, others) for member in sorted(times.members, key=_cost)])
    if isinstance(times, Exclusion):
        base, without = _part(times.base, others), _any_of([_part(each, others) for each in times.without])
        return _all_of([base, lambda bucket: difference_of(_bounds(bucket), without(bucket))])
    assert_never(times)


def _cost(times: Times) -> int:
    """Return a rank of the cost. Cheap members are evaluated first, because often they leave nothing to intersect."""
    if isinstance(times, Dates | Windows):
        return 0
    return 1 if isinstance(times, Hours) else 2


def _any_of(parts: list[BucketOpenings]) -> BucketOpenings:
    return lambda bucket: union_of(interval for part in parts for interval in part(bucket))


def _all_of(parts: list[BucketOpenings]) -> BucketOpenings:
    def both(bucket: int) -> Intervals:
        found: Intervals = (_bounds(bucket),)
        for part in parts:
            if not found:
                break
            found = intersection_of(found, part(bucket))
        return found

    return both


def open_when_all(calendars: "list[Calendar]") -> Calendar:
    """Return a calendar that is open when all these calendars are open."""
    if len(calendars) == 1:
        return calendars[0]
    return Calendar(_all_of([each.bucket for each in calendars]), " and ".join(each.name for each in calendars))


def _bounds(bucket: int) -> tuple[int, int]:
    return bucket << BITS, (bucket + 1) << BITS
