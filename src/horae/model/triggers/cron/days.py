"""The days of a month that an expression matches.

The matching days of a month are bits; bit 0 is the first day. They depend only on the month's length and the weekday of
its first day. So there are only 28 *shapes* of months, and an expression computes its days for each shape in advance.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

SHAPES = tuple((length, first) for length in (28, 29, 30, 31) for first in range(7))
LENGTHS = {2: (28, 29)} | {month: (30,) if month in (4, 6, 9, 11) else (31,) for month in range(1, 13) if month != 2}

_FIVE_WEEKS = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28


def shape(length: int, first: int) -> int:
    """Return the index in SHAPES of a month with this length and this first weekday (0 is Sunday)."""
    return (length - 28) * 7 + first


class Special(Protocol):
    """A day found by counting within the month, not by its number."""

    def bits(self, length: int, first: int) -> int:
        """Return the matching days, as bits, of a month with this length and this first weekday (0 is Sunday)."""
        ...


@dataclass(frozen=True, slots=True)
class Last:
    """`L`, the last day, or a number of days before it."""

    before: int = 0

    def bits(self, length: int, first: int) -> int:
        return 1 << length - 1 - self.before if self.before < length else 0


@dataclass(frozen=True, slots=True)
class Nearest:
    """`15W`, the working day (Monday to Friday) in the same month that is nearest to a day.

    For `LW` and `L-3W`, `day` is None, and that day is `before` days before the last of the month.
    """

    day: int | None = None
    before: int = 0

    def bits(self, length: int, first: int) -> int:
        day = self.day or length - self.before
        if not 1 <= day <= length:
            return 0
        weekday = (first + day - 1) % 7
        if weekday == 6:
            day += -1 if day > 1 else 2
        elif weekday == 0:
            day += 1 if day < length else -2
        return 1 << day - 1


@dataclass(frozen=True, slots=True)
class Nth:
    """`MON#2`, the nth occurrence of a weekday."""

    weekday: int
    nth: int

    def bits(self, length: int, first: int) -> int:
        day = (self.weekday - first) % 7 + 7 * (self.nth - 1)
        return 1 << day if day < length else 0


@dataclass(frozen=True, slots=True)
class LastWeekday:
    """`5L`, the last occurrence of a weekday."""

    weekday: int

    def bits(self, length: int, first: int) -> int:
        last = (first + length - 1) % 7
        return 1 << length - 1 - (last - self.weekday) % 7


@dataclass(frozen=True, slots=True)
class Days:
    """One day field: plain values as bits (bit 0 is the value 0) and special days."""

    plain: int
    special: tuple[Special, ...] = field(default=())

    def of_month(self, length: int, first: int) -> int:
        """Return the matching days of a month, as bits, if this is the day-of-month field."""
        return self.plain >> 1 & (1 << length) - 1 | self._special(length, first)

    def of_week(self, length: int, first: int) -> int:
        """Return the matching days of a month, as bits, if this is the day-of-week field, in which 0 is Sunday."""
        week = (self.plain | self.plain << 7) >> first & 0x7F
        return week * _FIVE_WEEKS & (1 << length) - 1 | self._special(length, first)

    def _special(self, length: int, first: int) -> int:
        bits = 0
        for each in self.special:
            bits |= each.bits(length, first)
        return bits


@lru_cache(maxsize=4096)
def month_days(dom: Days, dow: Days, *, both: bool) -> tuple[int, ...]:
    """Return, for each shape in SHAPES, the days that match both fields (if `both`) or at least one of them."""
    rows = ((dom.of_month(*each), dow.of_week(*each)) for each in SHAPES)
    return tuple(month & week if both else month | week for month, week in rows)


def never(months: int, days: tuple[int, ...]) -> bool:
    """Return whether no date matches: `months` has the matching months as bits, `days` the days for each shape."""
    lengths = {length for month in LENGTHS if months >> month & 1 for length in LENGTHS[month]}
    return not any(days[shape(length, first)] for length in lengths for first in range(7))
