"""Wall times that a clock change skips and that never fire.

This concerns fixed expressions, if they are set to skip gaps or if a whole date is skipped.
"""

from typing import NamedTuple

from horae.model.triggers.cron.count import count_walls
from horae.model.triggers.cron.fire import LONG_GAP, DstGap
from horae.model.triggers.cron.wall import CronExpression, ceil_wall, floor_wall
from horae.model.triggers.cron.zone import Span, spans


class LostTimes(NamedTuple):
    """The matching wall times of one gap: their number, the first, the last, and the clock before and after the gap."""

    change: int  # the UTC second at which the clock jumps from `before` to `after`
    before: int
    after: int
    times: int
    first: int
    last: int


def lost_times(x: CronExpression, zone: str, bucket: int, gap: DstGap = "shift") -> list[LostTimes]:
    """Return the gaps of one bucket of UTC seconds with matching wall times that do not fire."""
    return [] if x.wild else [lost for span in spans(zone, bucket) if (lost := _lost(x, span, gap)) is not None]


def _lost(x: CronExpression, span: Span, gap: DstGap) -> LostTimes | None:
    lands = span.start + span.offset
    if lands <= span.high or (gap == "shift" and lands - span.high < LONG_GAP):
        return None
    first = ceil_wall(x, span.high)
    if first is None or first >= lands:
        return None
    last = floor_wall(x, lands - 1)
    assert last is not None
    return LostTimes(span.start, span.high, lands, count_walls(x, span.high, lands), first, last)
