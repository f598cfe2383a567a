"""Vixie's loop, as in Debian's cron: a virtual minute clock that follows the wall clock.

It parses expressions and zones on its own and does not use the code under test.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from tests.model.cron.writing import MONTHS, NAMES
from tests.model.zones import changes, first_offset

LONG = 180  # minutes: beyond that the clock was corrected, not changed
SHORT = 5  # minutes: a difference this small is caught up like missed sleep
EPOCH = date(1970, 1, 1).toordinal()


class Wake(NamedTuple):
    """One wake-up of the loop: the wall minutes for which it starts wild jobs, and those for fixed ones."""

    second: int
    wild: range
    fixed: range


@dataclass(frozen=True)
class Entry:
    """A line of a crontab: plain values, lists, ranges, steps and names."""

    minutes: frozenset[int]
    hours: frozenset[int]
    doms: frozenset[int]
    months: frozenset[int]
    dows: frozenset[int]
    wild: bool
    both: bool

    @classmethod
    def read(cls, text: str) -> "Entry":
        minute, hour, dom, month, dow = text.upper().split()
        return cls(
            minutes=_values(minute, 0, 59),
            hours=_values(hour, 0, 23),
            doms=_values(dom, 1, 31),
            months=_values(month, 1, 12, dict(zip(MONTHS, range(1, 13), strict=True))),
            dows=frozenset(day % 7 for day in _values(dow, 0, 7, dict(zip(NAMES, range(7), strict=True)))),
            wild=minute[0] == "*" or hour[0] == "*",
            both=dom[0] == "*" or dow[0] == "*",
        )

    def on(self, day: int) -> bool:
        """Return whether it runs on a day since 1970."""
        at = date.fromordinal(day + EPOCH)
        if at.month not in self.months:
            return False
        dom, dow = at.day in self.doms, at.isoweekday() % 7 in self.dows
        return (dom and dow) if self.both else (dom or dow)


def _values(text: str, lo: int, hi: int, names: dict[str, int] | None = None) -> frozenset[int]:
    found: set[int] = set()
    for item in text.split(","):
        base, _, step = item.partition("/")
        first, dash, last = (f"{lo}-{hi}" if base == "*" else base).partition("-")
        begin, end = (int((names or {}).get(each, each)) for each in (first, last if dash else first))
        found.update(range(begin, end + 1, int(step or 1)))
    return frozenset(found)


def wakes(zone: str, start: int, end: int) -> Iterator[Wake]:
    """Return each wake-up of the loop between two UTC seconds, starting in step with the clock."""
    virtual = None
    for second, minute in _minutes(zone, start, end):
        ahead = 1 if virtual is None else minute - virtual
        now, missed = range(minute, minute + 1), range((minute if virtual is None else virtual) + 1, minute + 1)
        if ahead == 1 or ahead > LONG or ahead <= -LONG:
            yield Wake(second, now, now)
        elif ahead <= 0:  # set back: fixed jobs have run already, until the virtual clock is caught up with
            yield Wake(second, now, range(0))
            continue
        elif ahead <= SHORT:
            yield Wake(second, missed, missed)
        else:
            yield Wake(second, now, missed)
        virtual = minute


class Starts:
    """Return the jobs that the loop starts between two UTC seconds, for any entry."""

    def __init__(self, zone: str, start: int, end: int) -> None:
        self._by_minute: dict[tuple[bool, int], list[tuple[int, int]]] = defaultdict(list)
        for second, wild, fixed in wakes(zone, start, end):
            for minute in wild:
                self._by_minute[True, minute % 60].append((second, minute))
            for minute in fixed:
                self._by_minute[False, minute % 60].append((second, minute))

    def of(self, entry: Entry) -> Iterator[int]:
        """Return the UTC second of each job started for an entry, in no particular order."""
        days: dict[int, bool] = {}
        for each in entry.minutes:
            for second, minute in self._by_minute[entry.wild, each]:
                if minute // 60 % 24 in entry.hours:
                    day = minute // 1440
                    if day not in days:
                        days[day] = entry.on(day)
                    if days[day]:
                        yield second


def _minutes(zone: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Return each UTC second at which the wall clock shows a new minute, and that minute."""
    known = changes(zone)
    place = bisect_right(known, (start, 10**9, 0))
    offset = known[place - 1][2] if place else first_offset(zone)
    shown, second = None, start + -(start + offset) % 60
    while second < end:
        if place < len(known) and known[place][0] <= second:
            second, _, offset = known[place]
            place += 1
        minute = (second + offset) // 60
        if minute != shown:
            yield second, minute
            shown = minute
        second += 60 - (second + offset) % 60
