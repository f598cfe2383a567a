"""Expressions on wall clock time, where every day has 24 hours: the next and the last matching time.

Wall times are whole seconds since 1970-01-01T00:00:00 as a wall clock shows them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from horae.model.triggers.cron.days import Days, shape

DAY = 86_400
YEARS_AHEAD = 50  # the rarest date, a leap day on a given weekday, may be 40 years away

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_FIRST_MONTH, _LAST_MONTH = 12, 9_999 * 12 + 10  # months since year 0: the range of `date`, less a margin at the end


class Ticks:
    """The matching values of one clock field, with tables that round a position up or down to one of them.

    `ceil[n]` is the first value at or above n, `floor[n + 1]` the last value at or below n; -1 means that none exists.
    """

    __slots__ = ("bits", "ceil", "first", "floor", "last")

    def __init__(self, bits: int, size: int) -> None:
        ceil, floor = [-1], [-1]
        for place in range(size):
            floor.append(place if bits >> place & 1 else floor[-1])
            ceil.append(size - 1 - place if bits >> size - 1 - place & 1 else ceil[-1])
        self.bits = bits
        # Each table has one entry more than the field has positions: -1 for the position just outside.
        self.ceil, self.floor = tuple(reversed(ceil)), tuple(floor)
        self.first, self.last = self.ceil[0], self.floor[-1]


@lru_cache(maxsize=4096)
def ticks(bits: int, size: int) -> Ticks:
    """Return the values of a field. Expressions share the object, because most of them differ in one field only."""
    return Ticks(bits, size)


@dataclass(frozen=True, slots=True, eq=False)
class CronExpression:
    """A parsed cron expression. `wild` decides its behaviour at clock changes (see `fire`).

    `months` has the matching months as bits; bit 1 is January.
    """

    text: str
    fields: tuple[str, ...]  # the six fields in upper case, from the second to the day of the week
    seconds: Ticks
    minutes: Ticks
    hours: Ticks
    months: int
    days: tuple[int, ...]  # the matching days, as bits, for each shape in `days.SHAPES`
    wild: bool
    dom: Days
    dow: Days  # 0 is Sunday in both dialects
    both: bool  # true if a day must match both day fields, false if one of them is enough
    years: tuple[int, ...] | None = None  # the years in order; None for every year
    dialect: str = "unix"

    def days_in(self, month: "Month") -> int:
        if self.years is not None and month.year not in self.years:
            return 0
        return self.days[month.shape] if self.months >> month.number & 1 else 0


@dataclass(frozen=True, slots=True)
class Month:
    """A month of a year. `start` is its first day, counted in days since 1970; `shape` is an index in `days.SHAPES`."""

    year: int
    number: int
    start: int
    shape: int


@lru_cache(maxsize=8192)
def month_at(index: int) -> Month:
    """Return the month `index` months after January of year 0."""
    year, number = divmod(index, 12)
    begin = date(year, number + 1, 1)
    after = date(year + (number == 11), (number + 1) % 12 + 1, 1)
    first = begin.toordinal() - EPOCH_ORDINAL
    return Month(year, number + 1, first, shape((after - begin).days, begin.isoweekday() % 7))


def ceil_wall(x: CronExpression, wall: int) -> int | None:
    """Return the first matching wall time at or after `wall`.

    Return None if the expression has no further year, or none of the next 50 years has a matching date.
    """
    day, second = divmod(wall, DAY)
    at = date.fromordinal(day + EPOCH_ORDINAL)
    index = at.year * 12 + at.month - 1
    month = month_at(index)
    bits = x.days_in(month) >> at.day - 1
    if bits & 1:
        time = ceil_time(x, second)
        if time >= 0:
            return day * DAY + time
    bits &= ~1
    if bits:
        return (day + _lowest(bits)) * DAY + first_time(x)
    return _first_in(x, _months_after(x, index))


def floor_wall(x: CronExpression, wall: int) -> int | None:
    """Return the last matching wall time at or before `wall`.

    Return None if the expression has no earlier year, or none of the previous 50 years has a matching date.
    """
    day, second = divmod(wall, DAY)
    at = date.fromordinal(day + EPOCH_ORDINAL)
    index = at.year * 12 + at.month - 1
    month = month_at(index)
    bits = x.days_in(month) & (1 << at.day) - 1
    if bits >> at.day - 1:
        time = floor_time(x, second)
        if time >= 0:
            return day * DAY + time
        bits &= ~(1 << at.day - 1)
    if bits:
        return (month.start + bits.bit_length() - 1) * DAY + last_time(x)
    return _last_in(x, _months_before(x, index))


def _months_after(x: CronExpression, index: int) -> Iterable[int]:
    if x.years is None:
        return range(index + 1, min(index + YEARS_AHEAD * 12, _LAST_MONTH) + 1)
    return (m for year in x.years for m in range(max(index + 1, year * 12), year * 12 + 12))


def _months_before(x: CronExpression, index: int) -> Iterable[int]:
    if x.years is None:
        return range(index - 1, max(index - YEARS_AHEAD * 12, _FIRST_MONTH) - 1, -1)
    return (m for year in reversed(x.years) for m in range(min(index - 1, year * 12 + 11), year * 12 - 1, -1))


def _first_in(x: CronExpression, months: Iterable[int]) -> int | None:
    for index in months:
        if not x.months >> index % 12 + 1 & 1:
            continue
        month = month_at(index)
        bits = x.days_in(month)
        if bits:
            return (month.start + _lowest(bits)) * DAY + first_time(x)
    return None


def _last_in(x: CronExpression, months: Iterable[int]) -> int | None:
    for index in months:
        if not x.months >> index % 12 + 1 & 1:
            continue
        month = month_at(index)
        bits = x.days_in(month)
        if bits:
            return (month.start + bits.bit_length() - 1) * DAY + last_time(x)
    return None


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def first_time(x: CronExpression) -> int:
    """Return the first matching second of a day."""
    return x.hours.first * 3600 + x.minutes.first * 60 + x.seconds.first


def last_time(x: CronExpression) -> int:
    """Return the last matching second of a day."""
    return x.hours.last * 3600 + x.minutes.last * 60 + x.seconds.last


def ceil_time(x: CronExpression, second: int) -> int:
    """Return the first matching second of the day at or after `second`, or -1."""
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    if x.hours.ceil[hour] == hour:
        if x.minutes.ceil[minute] == minute:
            tick = x.seconds.ceil[second]
            if tick >= 0:
                return hour * 3600 + minute * 60 + tick
        tick = x.minutes.ceil[minute + (x.minutes.ceil[minute] == minute)]
        if tick >= 0:
            return hour * 3600 + tick * 60 + x.seconds.first
        hour += 1
    hour = x.hours.ceil[hour]
    return -1 if hour < 0 else hour * 3600 + x.minutes.first * 60 + x.seconds.first


def floor_time(x: CronExpression, second: int) -> int:
    """Return the last matching second of the day at or before `second`, or -1."""
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    if x.hours.floor[hour + 1] == hour:
        if x.minutes.floor[minute + 1] == minute:
            tick = x.seconds.floor[second + 1]
            if tick >= 0:
                return hour * 3600 + minute * 60 + tick
            minute -= 1
        tick = x.minutes.floor[minute + 1]
        if tick >= 0:
            return hour * 3600 + tick * 60 + x.seconds.last
        hour -= 1
    hour = x.hours.floor[hour + 1]
    return -1 if hour < 0 else hour * 3600 + x.minutes.last * 60 + x.seconds.last
