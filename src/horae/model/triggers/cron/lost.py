"""Wall times that a clock change jumps over and that nothing makes up for.

A fixed expression leaves them out when it is to skip gaps, and where a whole date is left out.
"""

from typing import NamedTuple

from horae.model.triggers.cron.count import count_walls
from horae.model.triggers.cron.fire import LONG_GAP, DstGap
from horae.model.triggers.cron.wall import Expression, ceil_wall, floor_wall
from horae.model.triggers.cron.zone import Span, spans


class LostWalls(NamedTuple):
    """The matching wall times of one gap: how many, the first and the last, and what the clock showed around it."""

    change: int  # the UTC second at which the clock goes from `before` to `after`
    before: int
    after: int
    times: int
    first: int
    last: int


def lost_walls(x: Expression, zone: str, bucket: int, gap: DstGap = "shift") -> list[LostWalls]:
    """The gaps of one bucket of UTC seconds in which an expression has wall times that do not fire."""
    return [] if x.wild else [lost for span in spans(zone, bucket) if (lost := _lost(x, span, gap)) is not None]


def _lost(x: Expression, span: Span, gap: DstGap) -> LostWalls | None:
    lands = span.start + span.offset
    if lands <= span.high or (gap == "shift" and lands - span.high < LONG_GAP):
        return None
    first = ceil_wall(x, span.high)
    if first is None or first >= lands:
        return None
    last = floor_wall(x, lands - 1)
    assert last is not None
    return LostWalls(span.start, span.high, lands, count_walls(x, span.high, lands), first, last)
