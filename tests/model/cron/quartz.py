"""Quartz expressions by brute force: every second of every day is checked, with every offset the zone ever had.

It parses expressions in its own way, by asking of each value whether the text matches it, and knows zones by `zoneinfo`
and their own lists of changes. It does not use the code under test.
"""

import calendar
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import cache
from io import BytesIO
from zoneinfo import ZoneInfo

from tests.model.cron.writing import MONTHS, NAMES
from tests.model.zones import changes, first_offset, rules_of

EPOCH = date(1970, 1, 1)
LONG_GAP = 3 * 3600

WEEKDAYS = {name: number for number, name in enumerate(NAMES, 1)}
MONTH_NAMES = {name: number for number, name in enumerate(MONTHS, 1)}


class Quartz:
    """An expression that is evaluated for single days and times."""

    def __init__(self, text: str) -> None:
        second, minute, hour, self.dom, self.month, self.dow, *year = text.upper().split()
        self.year = year[0] if year else "*"
        self.wild = "*" in second[0] + minute[0] + hour[0]
        hours = [each for each in range(24) if _means(hour, each, 0, 23)]
        minutes, seconds = ([each for each in range(60) if _means(text, each, 0, 59)] for text in (minute, second))
        self.times = [h * 3600 + m * 60 + s for h in hours for m in minutes for s in seconds]

    def on(self, day: date) -> bool:
        """Return whether it fires on a day at all."""
        if not _means(self.year, day.year, 1970, 2099) or not _means(self.month, day.month, 1, 12, MONTH_NAMES):
            return False
        if self.dow == "?":
            return any(_day_of_month(item, day) for item in self.dom.split(","))
        return any(_weekday(item, day) for item in self.dow.split(","))


def fires(x: Quartz, zone: str, start: int, end: int) -> list[int]:
    """Return the UTC seconds after `start` up to `end` at which it fires."""
    near = [each for each in changes(zone) if start - 200_000 < each[0] < end + 200_000]
    offsets = {_offset(zone, at) for at in (start, end)} | {offset for each in near for offset in each[1:]}
    found = set()
    for wall in _walls(x, start + min(offsets), end + max(offsets)):
        passes = sorted(wall - offset for offset in offsets if _offset(zone, wall - offset) == offset)
        if passes:
            found.update(passes if x.wild else passes[:1])
        elif not x.wild:
            found.update(at for at, old, new in near if at + old <= wall < at + new and new - old < LONG_GAP)
    return sorted(at for at in found if start < at <= end)


def _walls(x: Quartz, first: int, last: int) -> Iterator[int]:
    for day in range(first // 86_400, last // 86_400 + 1):
        if x.on(EPOCH + timedelta(days=day)):
            yield from (at for time in x.times if first <= (at := day * 86_400 + time) <= last)


@cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo.from_file(BytesIO(rules_of(name)), key=name)  # not the machine's rules, which may be older


def _offset(name: str, second: int) -> int:
    if not changes(name):
        return first_offset(name)
    return int(datetime.fromtimestamp(second, _zone(name)).utcoffset().total_seconds())


def _means(text: str, value: int, lo: int, hi: int, names: dict[str, int] | None = None) -> bool:
    """Return whether one of a field's items matches a value."""
    return any(_item(item, value, lo, hi, names or {}) for item in text.split(","))


def _item(item: str, value: int, lo: int, hi: int, names: dict[str, int]) -> bool:
    base, _, step = item.partition("/")
    if base in ("*", "?", ""):
        return (value - lo) % int(step or 1) == 0
    first, dash, last = base.partition("-")
    begin = names.get(first) or int(first)
    end = (names.get(last) or int(last)) if dash else hi if step else begin
    steps = (value - begin) % (hi - lo + 1) if end < begin else value - begin
    length = (end - begin) % (hi - lo + 1) if end < begin else end - begin
    return 0 <= steps <= length and steps % int(step or 1) == 0


def _day_of_month(item: str, day: date) -> bool:
    length = calendar.monthrange(day.year, day.month)[1]
    counted = re.fullmatch(r"L(?:-(\d+))?(W?)|(\d+)(W)", item)
    if not counted:
        return _item(item, day.day, 1, 31, {})
    target = int(counted[3]) if counted[3] else length - int(counted[1] or 0)
    if not 1 <= target <= length:
        return False
    if not (counted[2] or counted[4]):
        return day.day == target
    workdays = [d for d in range(1, length + 1) if date(day.year, day.month, d).weekday() < 5]
    # Two weekdays are never equally near: a Saturday is one day from Friday, a Sunday one from Monday.
    return day.day == min(workdays, key=lambda each: abs(each - target))


def _weekday(item: str, day: date) -> bool:
    number = day.isoweekday() % 7 + 1
    if item == "L":
        return number == 7
    if "#" in item:
        name, nth = item.split("#")
        return number == (WEEKDAYS.get(name) or int(name)) and (day.day + 6) // 7 == int(nth)
    if item.endswith("L"):
        last = day + timedelta(days=7)
        return number == (WEEKDAYS.get(item[:-1]) or int(item[:-1])) and last.month != day.month
    return _item(item, number, 1, 7, WEEKDAYS)
