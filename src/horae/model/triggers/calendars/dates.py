"""Date entries: "2026-12-24", "2026-12-24/2027-01-02" for all days between, "12-25" for every year."""

import re
from collections.abc import Iterable
from datetime import date, timedelta

from msgspec import Struct

from horae.errors import BadInput

FIRST_YEAR, LAST_YEAR = 1970, 2199

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_YEARLY = re.compile(r"(?:--)?(\d\d)-(\d\d)", re.ASCII)
_ACCEPTED = 'Write "2026-12-24", "2026-12-24/2027-01-02" for all days between, or "12-25" for every year.'
_LEAP_YEAR = 2000  # has February 29


class Period(Struct, frozen=True):
    """All days from the first to the last, inclusive."""

    first: date
    last: date


class Yearly(Struct, frozen=True):
    """A month and day, in every year that has this day."""

    month: int
    day: int


def parse_day(text: object, field: str) -> Period | Yearly:
    """Parse one entry of a list of dates, or refuse it with the reason."""
    if not isinstance(text, str):
        raise BadInput(f"{field} is not a date.", _ACCEPTED, field=field)
    clean = text.strip()
    if found := _YEARLY.fullmatch(clean):
        day = _civil(_LEAP_YEAR, int(found[1]), int(found[2]), clean, field)
        return Yearly(day.month, day.day)
    first, slash, last = (part.strip() for part in clean.partition("/"))
    period = Period(_date(first, field), _date(last if slash else first, field))
    if period.last < period.first:
        raise BadInput(f"{clean!r} ends before it begins.", f'Write "{last}/{first}".', field=field)
    return period


def merge_periods(periods: Iterable[Period]) -> tuple[Period, ...]:
    """Merge periods that overlap or touch, and return them in order."""
    found: list[Period] = []
    for period in sorted(periods, key=lambda period: period.first):
        if found and period.first <= found[-1].last + timedelta(days=1):
            found[-1] = Period(found[-1].first, max(found[-1].last, period.last))
        else:
            found.append(period)
    return tuple(found)


def render_day(day: Period | Yearly) -> str:
    """Format a day or period as an entry."""
    if isinstance(day, Yearly):
        return f"{day.month:02d}-{day.day:02d}"
    return day.first.isoformat() if day.first == day.last else f"{day.first.isoformat()}/{day.last.isoformat()}"


def _date(text: str, field: str) -> date:
    found = _DATE.fullmatch(text)
    if not found:
        raise BadInput(f"{text[:40]!r} is not a date.", _ACCEPTED, field=field)
    day = _civil(int(found[1]), int(found[2]), int(found[3]), text, field)
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise BadInput(f"{text} is outside the years {FIRST_YEAR} to {LAST_YEAR}.", _ACCEPTED, field=field)
    return day


def _civil(year: int, month: int, day: int, text: str, field: str) -> date:
    try:
        return date(year, month, day)
    except ValueError as error:
        raise BadInput(f"{text!r} is a date that does not exist: {error}.", _ACCEPTED, field=field) from None
