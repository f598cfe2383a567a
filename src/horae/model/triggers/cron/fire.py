"""Conversion of wall times to instants: the fires of an expression in a zone, across clock changes.

An expression is *wild* if its second, minute or hour begins with `*` (or `?` in the unix dialect); otherwise it is
*fixed*. A wild expression fires at every instant with a matching wall time: a time skipped by a jump forward does not
fire, and a time repeated by a jump back fires twice. In a fixed expression each matching wall time fires once. If the
clock shows it twice (an overlap), it fires the first time. If a jump forward skips it (a gap), it fires at the end of
the gap, unless the gap is three hours or longer (a skipped date): then it does not fire. `dst_gap` and `dst_overlap`
change that for fixed expressions. Fires are enumerated in UTC, one span of constant offset after another.
"""

from typing import Literal, NamedTuple

from horae.env import SECOND, Instant
from horae.model.triggers.cron.wall import DAY, CronExpression, ceil_wall, floor_wall
from horae.model.triggers.cron.zone import BUCKET_BITS, FIRST_BUCKET, LAST_BUCKET, Span, spans

DstGap = Literal["shift", "skip"]
DstOverlap = Literal["first", "second", "both"]

LONG_GAP = 3 * 3600  # a gap this long is a calendar change, not a clock change


class ClockChangeRule(NamedTuple):
    """The behaviour of an expression at clock changes.

    With `shift`, wall times in a gap fire at its end. A repeated wall time fires both times, unless `first_only` or
    `last_only` is set.
    """

    shift: bool
    first_only: bool
    last_only: bool


_WILD = ClockChangeRule(shift=False, first_only=False, last_only=False)
_FIXED = {
    (gap, overlap): ClockChangeRule(gap == "shift", overlap == "first", overlap == "second")
    for gap in ("shift", "skip")
    for overlap in ("first", "second", "both")
}


def clock_change_rule(x: CronExpression, gap: DstGap, overlap: DstOverlap) -> ClockChangeRule:
    """Return the behaviour of an expression at clock changes. Wild expressions ignore `gap` and `overlap`."""
    return _WILD if x.wild else _FIXED[gap, overlap]


def next_after(
    x: CronExpression, zone: str, after: Instant, gap: DstGap = "shift", overlap: DstOverlap = "first"
) -> Instant | None:
    """Return the first fire strictly after an instant.

    Return None if the expression has no further year, or none of the next 50 years has a matching date.
    """
    rule = clock_change_rule(x, gap, overlap)
    second = after // SECOND + 1
    bucket = second >> BUCKET_BITS
    while FIRST_BUCKET <= bucket <= LAST_BUCKET:
        for span in spans(zone, bucket):
            if span.end > second:
                found = _first_in(x, span, second, rule)
                if found is not None:
                    return found * SECOND
        # No wall time of a later bucket is earlier than this: an offset is less than a day.
        wall = ceil_wall(x, ((bucket + 1) << BUCKET_BITS) - DAY)
        if wall is None:
            return None
        bucket = max(bucket + 1, (wall - DAY) >> BUCKET_BITS)
    return None


def last_before(
    x: CronExpression, zone: str, before: Instant, gap: DstGap = "shift", overlap: DstOverlap = "first"
) -> Instant | None:
    """Return the last fire strictly before an instant.

    Return None if the expression has no earlier year, or none of the previous 50 years has a matching date.
    """
    rule = clock_change_rule(x, gap, overlap)
    second = -(-before // SECOND) - 1
    bucket = second >> BUCKET_BITS
    while FIRST_BUCKET <= bucket <= LAST_BUCKET:
        for span in reversed(spans(zone, bucket)):
            if span.start <= second:
                found = _last_in(x, span, second, rule)
                if found is not None:
                    return found * SECOND
        wall = floor_wall(x, (bucket << BUCKET_BITS) + DAY)
        if wall is None:
            return None
        bucket = min(bucket - 1, (wall + DAY) >> BUCKET_BITS)
    return None


def _first_in(x: CronExpression, span: Span, second: int, rule: ClockChangeRule) -> int | None:
    """Return the first fire of a span at or after a UTC second."""
    if rule.shift and second <= span.start and fires_in_gap(x, span):
        return span.start
    lo, hi = walls(span, rule)
    wall = ceil_wall(x, max(lo, second + span.offset))
    return wall - span.offset if wall is not None and wall < hi else None


def _last_in(x: CronExpression, span: Span, second: int, rule: ClockChangeRule) -> int | None:
    """Return the last fire of a span at or before a UTC second."""
    lo, hi = walls(span, rule)
    wall = floor_wall(x, min(hi - 1, second + span.offset))
    if wall is not None and wall >= lo:
        return wall - span.offset
    return span.start if rule.shift and fires_in_gap(x, span) else None


def walls(span: Span, rule: ClockChangeRule) -> tuple[int, int]:
    """Return the range of wall times, as (first, end), that fire in this span.

    Repeated wall times are left out if the rule lets them fire only in an earlier or a later span.
    """
    lo, hi = span.start + span.offset, span.end + span.offset
    return max(lo, span.high) if rule.first_only else lo, min(hi, span.low) if rule.last_only else hi


def fires_in_gap(x: CronExpression, span: Span) -> bool:
    """Return whether the gap before this span contains a matching wall time and is shorter than LONG_GAP."""
    lands = span.start + span.offset
    if not 0 < lands - span.high < LONG_GAP:
        return False
    wall = ceil_wall(x, span.high)
    return wall is not None and wall < lands
