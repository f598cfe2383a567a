"""Wall times that a clock change skips and that never fire.

Only *fixed* expressions (see `fire`) have such times: if the user chose to skip them, or if a zone skips a whole date.
"""

from typing import NamedTuple

from horae.model.triggers.cron.count import count_walls
from horae.model.triggers.cron.fire import LONG_GAP, DstGap
from horae.model.triggers.cron.wall import CronExpression, ceil_wall, floor_wall
from horae.model.triggers.cron.zone import Span, spans


class LostTimes(NamedTuple):
    """The matching wall times in one gap: how many there are (`times`), the `first` and the `last`, in wall seconds.

    The wall clock jumps from `before` to `after`.
    """

    change: int  # the UTC second of the jump
    before: int
    after: int
    times: int
    first: int
    last: int


def lost_times(x: CronExpression, zone: str, bucket: int, gap: DstGap = "shift") -> list[LostTimes]:
    """Return the gaps in one bucket of UTC seconds that contain matching wall times, if these do not fire."""
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
