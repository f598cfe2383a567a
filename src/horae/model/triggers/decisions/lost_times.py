"""Wall times of a trigger that a clock change skipped: the ledger has a row for each change that skipped such times.

They are not nominal fires, because no instant corresponds to them. The instant of their row is a microsecond before the
clock change. Fires are at whole seconds, so no fire has that instant, not even a fire at the end of the gap.

Only *fixed* expressions (see `cron/fire.py`) have such times: if the user chose to skip them, or if a zone skips a
whole date.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.model.base.duration import format_duration
from horae.model.base.instant import format_instant
from horae.model.triggers.cron.count import count_walls
from horae.model.triggers.cron.fire import LONG_GAP, DstGap
from horae.model.triggers.cron.wall import CronExpression, ceil_wall, floor_wall
from horae.model.triggers.cron.zone import BUCKET_BITS, FIRST_BUCKET, LAST_BUCKET, Span, spans
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Cron, Trigger

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


class LostTimesRecord(Struct, frozen=True):
    """The wall times skipped by one clock change: the instant of the ledger row, the times in words, and the cause."""

    at: Instant
    walls: str
    cause: str


def can_lose_times(trigger: Trigger) -> bool:
    """Return whether a clock change may skip wall times of a trigger. This cheap test avoids most searches for them."""
    wall = trigger.wall
    return wall is not None and wall.timezone != "UTC" and _is_fixed(wall)


@lru_cache(maxsize=32_768)
def _is_fixed(cron: Cron) -> bool:
    return not cron.parsed.wild


def lost_times_between(trigger: Trigger, rules: Rules, after: Instant, before: Instant) -> Sequence[LostTimesRecord]:
    """Return the records of skipped wall times strictly between two instants, within the rules' bounds, in order."""
    wall = trigger.wall
    if wall is None or not can_lose_times(trigger):
        return ()
    if rules.start_at is not None:
        after = max(after, rules.start_at - 1)
    if rules.end_at is not None:
        before = min(before, rules.end_at)
    first, last = (after + 1) // SECOND >> BUCKET_BITS, before // SECOND >> BUCKET_BITS
    buckets = range(max(first, FIRST_BUCKET), min(last, LAST_BUCKET) + 1)
    return [lost for bucket in buckets for lost in _lost_in(wall, bucket) if after < lost.at < before]


def first_lost_time(trigger: Trigger, rules: Rules, after: Instant, before: Instant) -> Instant | None:
    """Return the instant of the first record of skipped wall times strictly between two instants, or None."""
    lost = lost_times_between(trigger, rules, after, before)
    return lost[0].at if lost else None


@lru_cache(maxsize=32_768)
def _lost_in(cron: Cron, bucket: int) -> tuple[LostTimesRecord, ...]:
    lost = lost_times(cron.parsed, cron.timezone, bucket, cron.dst_gap)
    return tuple(_in_words(cron.timezone, walls) for walls in lost)


def _in_words(zone: str, lost: LostTimes) -> LostTimesRecord:
    walls = _wall(lost.first)
    if lost.times > 1:
        walls = f"{lost.times} times from {walls} to {_wall(lost.last)}"
    change = lost.change * SECOND
    amount = format_duration((lost.after - lost.before) * SECOND)
    cause = (
        f"{walls} did not exist in {zone}: clocks went forward by {amount} at {format_instant(change)},"
        f" from {_wall(lost.before)} to {_wall(lost.after)}"
    )
    return LostTimesRecord(change - 1, walls, cause)


def _wall(second: int) -> str:
    at = _EPOCH + timedelta(seconds=second)
    return at.strftime("%Y-%m-%d %H:%M:%S" if at.second else "%Y-%m-%d %H:%M")
