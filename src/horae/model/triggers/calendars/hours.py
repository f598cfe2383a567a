"""WeeklyHours hours: "MON-FRI 09:00-17:00", "SAT,SUN 22:00-02:00", "09:00-17:00" for every day."""

import re
from difflib import get_close_matches

from msgspec import Struct

from horae.errors import BadInput

WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
DAY = 86_400

_HOURS = re.compile(r"(?:([A-Za-z][A-Za-z,\s-]*)\s+)?(\S+?)\s*-\s*(\S+)")
_TIME = re.compile(r"(\d\d?):(\d\d)(?::(\d\d))?", re.ASCII)
_ACCEPTED = 'Write "MON-FRI 09:00-17:00", "SAT,SUN 22:00-02:00" over midnight, or "09:00-17:00" for every day.'


class WeeklyHours(Struct, frozen=True):
    """Opening hours on weekdays (0 is Monday). `start` and `end` are seconds since the midnight before.

    An `end` of more than 86400 is on the next day.
    """

    weekdays: tuple[int, ...]
    start: int
    end: int


def parse_hours(text: object, field: str) -> WeeklyHours:
    """Parse one entry of weekly hours or refuse it with the reason.

    An end at or before the start is on the next day.
    """
    if not isinstance(text, str):
        raise BadInput(f"{field} is not a text.", _ACCEPTED, field=field)
    found = _HOURS.fullmatch(text.strip())
    if not found:
        raise BadInput(f"{text[:60]!r} is not a valid entry of weekly hours.", _ACCEPTED, field=field)
    start, end = _time(found[2], field), _time(found[3], field)
    if start == DAY:
        raise BadInput(f"{text[:60]!r} begins when the day has ended.", "Begin at 00:00 on the next day.", field=field)
    if start == end:
        remedy = 'Write "00:00-24:00" for whole days, or give an end other than the start.'
        raise BadInput(f"{text[:60]!r} ends when it begins.", remedy, field=field)
    weekdays = _weekdays(found[1], field) if found[1] else tuple(range(7))
    return WeeklyHours(weekdays, start, end if end > start else end + DAY)


def render_hours(weekly: WeeklyHours) -> str:
    """Format weekly hours as an entry."""
    hours = f"{_clock(weekly.start)}-{_clock(weekly.end if weekly.end <= DAY else weekly.end - DAY)}"
    days = weekly.weekdays
    if len(days) == 7:
        return hours
    if len(days) > 2 and days == tuple(range(days[0], days[-1] + 1)):
        return f"{WEEKDAYS[days[0]]}-{WEEKDAYS[days[-1]]} {hours}"
    return f"{','.join(WEEKDAYS[day] for day in days)} {hours}"


def _weekdays(text: str, field: str) -> tuple[int, ...]:
    """Parse days and ranges of days; a range may wrap past Sunday."""
    days: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        begin = _weekday(first, field)
        length = (_weekday(last, field) - begin) % 7 if dash else 0
        days.update((begin + n) % 7 for n in range(length + 1))
    return tuple(sorted(days))


def _weekday(text: str, field: str) -> int:
    name = text.strip().upper()
    known = {**{day: n for n, day in enumerate(WEEKDAYS)}, **{day: n for n, day in enumerate(_WHOLE)}}
    if name not in known:
        near = get_close_matches(name, known, n=1)
        remedy = f"Did you mean {near[0]}?" if near else f"The days are {', '.join(WEEKDAYS)}."
        raise BadInput(f"{text[:20]!r} is not a weekday.", remedy, field=field)
    return known[name]


_WHOLE = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


def _time(text: str, field: str) -> int:
    found = _TIME.fullmatch(text)
    if not found:
        raise BadInput(f"{text[:20]!r} is not a time of day.", _ACCEPTED, field=field)
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    seconds = hour * 3600 + minute * 60 + second
    if minute > 59 or second > 59 or seconds > DAY:
        remedy = "Write a time from 00:00 to 24:00; minutes and seconds go up to 59."
        raise BadInput(f"{text} is not a valid time of day.", remedy, field=field)
    return seconds


def _clock(seconds: int) -> str:
    minute, second = divmod(seconds, 60)
    hour, minute = divmod(minute, 60)
    return f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if second else "")
