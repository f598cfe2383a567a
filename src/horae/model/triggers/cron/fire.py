"""From the clock on the wall to instants: when an expression fires in a zone, across clock changes.

A *wild* expression fires at every instant whose wall time matches: what a jump forward skips does not exist, what a
jump back repeats matches twice. In a *fixed* one each matching wall time fires once: in an overlap on the first pass,
in a gap of less than three hours at its end, in a longer gap (a skipped date) not at all. `dst_gap` and `dst_overlap`
change that for fixed expressions. Everything is enumerated in UTC, span by span of constant offset.
"""

from typing import Literal, NamedTuple

from horae.env import SECOND, Instant
from horae.model.triggers.cron.wall import DAY, Expression, ceil_wall, floor_wall
from horae.model.triggers.cron.zone import BUCKET_BITS, FIRST_BUCKET, LAST_BUCKET, Span, spans

DstGap = Literal["shift", "skip"]
DstOverlap = Literal["first", "second", "both"]

LONG_GAP = 3 * 3600  # a gap this long is a change of the calendar, not of the clock


class Passing(NamedTuple):
    """What an expression does at a clock change: shift out of gaps, and on which passes of an overlap it fires."""

    shift: bool
    first_only: bool
    last_only: bool


_WILD = Passing(shift=False, first_only=False, last_only=False)
_FIXED = {
    (gap, overlap): Passing(gap == "shift", overlap == "first", overlap == "second")
    for gap in ("shift", "skip")
    for overlap in ("first", "second", "both")
}


def passing_of(x: Expression, gap: DstGap, overlap: DstOverlap) -> Passing:
    """What an expression does at a clock change; the choices are for fixed ones."""
    return _WILD if x.wild else _FIXED[gap, overlap]


def next_after(
    x: Expression, zone: str, after: Instant, gap: DstGap = "shift", overlap: DstOverlap = "first"
) -> Instant | None:
    """The first fire strictly after an instant, or None when there is none for 50 years or in the years it names."""
    passing = passing_of(x, gap, overlap)
    second = after // SECOND + 1
    bucket = second >> BUCKET_BITS
    while FIRST_BUCKET <= bucket <= LAST_BUCKET:
        for span in spans(zone, bucket):
            if span.end > second:
                found = _first_in(x, span, second, passing)
                if found is not None:
                    return found * SECOND
        # Wall times of later buckets are less than a day before their start; theirs is less than a day before UTC.
        wall = ceil_wall(x, ((bucket + 1) << BUCKET_BITS) - DAY)
        if wall is None:
            return None
        bucket = max(bucket + 1, (wall - DAY) >> BUCKET_BITS)
    return None


def last_before(
    x: Expression, zone: str, before: Instant, gap: DstGap = "shift", overlap: DstOverlap = "first"
) -> Instant | None:
    """The last fire strictly before an instant, or None when there was none for 50 years or in the years it names."""
    passing = passing_of(x, gap, overlap)
    second = -(-before // SECOND) - 1
    bucket = second >> BUCKET_BITS
    while FIRST_BUCKET <= bucket <= LAST_BUCKET:
        for span in reversed(spans(zone, bucket)):
            if span.start <= second:
                found = _last_in(x, span, second, passing)
                if found is not None:
                    return found * SECOND
        wall = floor_wall(x, (bucket << BUCKET_BITS) + DAY)
        if wall is None:
            return None
        bucket = min(bucket - 1, (wall + DAY) >> BUCKET_BITS)
    return None


def _first_in(x: Expression, span: Span, second: int, passing: Passing) -> int | None:
    """The first fire of a span at or after a UTC second."""
    if passing.shift and second <= span.start and fires_in_gap(x, span):
        return span.start
    lo, hi = walls(span, passing)
    wall = ceil_wall(x, max(lo, second + span.offset))
    return wall - span.offset if wall is not None and wall < hi else None


def _last_in(x: Expression, span: Span, second: int, passing: Passing) -> int | None:
    """The last fire of a span at or before a UTC second."""
    lo, hi = walls(span, passing)
    wall = floor_wall(x, min(hi - 1, second + span.offset))
    if wall is not None and wall >= lo:
        return wall - span.offset
    return span.start if passing.shift and fires_in_gap(x, span) else None


def walls(span: Span, passing: Passing) -> tuple[int, int]:
    """The wall times, first and end, for which this span is the pass that fires."""
    lo, hi = span.start + span.offset, span.end + span.offset
    return max(lo, span.high) if passing.first_only else lo, min(hi, span.low) if passing.last_only else hi


def fires_in_gap(x: Expression, span: Span) -> bool:
    """Whether a wall time matches in the gap that begins this span, if there is one short enough to shift out of."""
    lands = span.start + span.offset
    if not 0 < lands - span.high < LONG_GAP:
        return False
    wall = ceil_wall(x, span.high)
    return wall is not None and wall < lands
