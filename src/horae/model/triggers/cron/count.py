"""The number of fires between two instants, computed by month and clock change instead of fire by fire."""

from datetime import date

from horae.env import SECOND, Instant
from horae.model.triggers.cron.fire import ClockChangeRule, DstGap, DstOverlap, clock_change_rule, fires_in_gap, walls
from horae.model.triggers.cron.wall import DAY, EPOCH_ORDINAL, CronExpression, Ticks, month_at
from horae.model.triggers.cron.zone import BUCKET_BITS, FIRST_BUCKET, LAST_BUCKET, Span, spans


def count_between(
    x: CronExpression, zone: str, after: Instant, before: Instant, gap: DstGap = "shift", overlap: DstOverlap = "first"
) -> int:
    """Count the fires strictly between two instants. The cost grows with the number of months, not of fires."""
    rule = clock_change_rule(x, gap, overlap)
    lo, hi = after // SECOND + 1, -(-before // SECOND)  # UTC seconds; `hi` itself is excluded
    buckets = range(max(lo >> BUCKET_BITS, FIRST_BUCKET), min((hi - 1) >> BUCKET_BITS, LAST_BUCKET) + 1)
    return sum(_count_in(x, span, lo, hi, rule) for bucket in buckets for span in spans(zone, bucket))


def _count_in(x: CronExpression, span: Span, lo: int, hi: int, rule: ClockChangeRule) -> int:
    """Count the fires of a span at UTC seconds from `lo` to before `hi`."""
    start, end = max(lo, span.start), min(hi, span.end)
    if start >= end:
        return 0
    first, last = walls(span, rule)
    count = count_walls(x, max(first, start + span.offset), min(last, end + span.offset))
    lands = span.start + span.offset
    if rule.shift and start == span.start and fires_in_gap(x, span) and not count_walls(x, lands, lands + 1):
        count += 1
    return count


def count_walls(x: CronExpression, lo: int, hi: int) -> int:
    """Count the matching wall times from `lo` to before `hi`."""
    if lo >= hi:
        return 0
    (first, since), (last, until) = divmod(lo, DAY), divmod(hi, DAY)
    count = _days_between(x, first, last) * _times_before(x, DAY)
    if since and _days_between(x, first, first + 1):
        count -= _times_before(x, since)
    if until and _days_between(x, last, last + 1):
        count += _times_before(x, until)
    return count


def _days_between(x: CronExpression, first: int, end: int) -> int:
    """Count the matching days from `first` to before `end`; days are numbered from 1970-01-01."""
    count = 0
    index = _month_of(first) if first < end else 0
    while first < end:
        month, following = month_at(index), month_at(index + 1)
        bits = x.days_in(month) >> first - month.start
        if end < following.start:
            bits &= (1 << end - first) - 1
        count += bits.bit_count()
        first, index = following.start, index + 1
    return count


def _month_of(day: int) -> int:
    at = date.fromordinal(day + EPOCH_ORDINAL)
    return at.year * 12 + at.month - 1


def _times_before(x: CronExpression, second: int) -> int:
    """Count the matching times of a day that are earlier than its `second`."""
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    in_minute = x.seconds.bits.bit_count()
    count = _below(x.hours, hour) * x.minutes.bits.bit_count() * in_minute
    if x.hours.bits >> hour & 1:
        count += _below(x.minutes, minute) * in_minute
        if x.minutes.bits >> minute & 1:
            count += _below(x.seconds, second)
    return count


def _below(ticks: Ticks, value: int) -> int:
    return (ticks.bits & (1 << value) - 1).bit_count()
