"""Wall-clock times of a zone as UTC seconds: an instant is open if the zone's clock shows an open time.

So hours that a clock change skips do not exist, and open hours that it repeats are open both times.
"""

from bisect import bisect_left
from calendar import isleap
from collections.abc import Iterator
from datetime import date

from horae.model.triggers.calendars.business import working_days
from horae.model.triggers.calendars.intervals import Interval, Intervals, intersection_of, union_of
from horae.model.triggers.calendars.values import Business, Dates, Hours
from horae.model.triggers.cron.zone import BUCKET_BITS, spans

DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
_MONDAY = date(1970, 1, 5).toordinal() - _EPOCH


def open_in(times: Business | Dates | Hours, first: int, last: int) -> Intervals:
    """Return the open UTC seconds from `first` to before `last`, within one bucket of time zones."""
    found: list[Interval] = []
    for span in spans(times.timezone, first >> BUCKET_BITS):
        start, end = max(span.start, first) + span.offset, min(span.end, last) + span.offset
        if start >= end:
            continue
        walls = union_of(_walls(times, start // DAY, -(-end // DAY)))
        found += [(a - span.offset, b - span.offset) for a, b in intersection_of(((start, end),), walls)]
    return union_of(found)


def _walls(times: Business | Dates | Hours, first: int, last: int) -> Iterator[Interval]:
    """Yield open wall seconds, at least those of the days (since 1970) from `first` to before `last`."""
    if isinstance(times, Hours):
        return _weekly(times, first, last)
    days = _working(times, first, last) if isinstance(times, Business) else _dated(times, first, last)
    return ((a * DAY, b * DAY) for a, b in days)


def _weekly(hours: Hours, first: int, last: int) -> Iterator[Interval]:
    for day in range(first - 1, last):  # yesterday's hours may continue past midnight
        weekday = (day - _MONDAY) % 7
        for each in hours.weekly:
            if weekday in each.weekdays:
                yield day * DAY + each.start, day * DAY + each.end


def _working(days: Business, first: int, last: int) -> Iterator[Interval]:
    day = first
    while day < last:
        year = date.fromordinal(day + _EPOCH).year
        begin = date(year, 1, 1).toordinal() - _EPOCH
        works = working_days(days, year)
        for n in range(day - begin, min(len(works), last - begin)):
            if works[n]:
                yield begin + n, begin + n + 1
        day = begin + len(works)


def _dated(dates: Dates, first: int, last: int) -> Iterator[Interval]:
    """Yield the open days from `first` to before `last`.

    `read` has ordered and merged the periods, so a binary search finds the first of them.
    """
    periods = dates.periods
    at = bisect_left(periods, first, key=lambda period: period.last.toordinal() - _EPOCH)
    while at < len(periods) and periods[at].first.toordinal() - _EPOCH < last:
        yield periods[at].first.toordinal() - _EPOCH, periods[at].last.toordinal() - _EPOCH + 1
        at += 1
    for year in range(date.fromordinal(first + _EPOCH).year, date.fromordinal(last + _EPOCH).year + 1):
        for each in dates.yearly:
            if (each.month, each.day) != (2, 29) or isleap(year):
                day = date(year, each.month, each.day).toordinal() - _EPOCH
                yield day, day + 1
