"""Calendar days in a time zone. Some days have 23 or 25 hours, because clocks are changed."""

from datetime import UTC, date, datetime, time, timedelta

from horae.env import SECOND, Instant
from horae.errors import BadInput
from horae.model.base.instant import parse_instant
from horae.model.triggers.cron.zone import load

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def day_at(zone: str, at: Instant) -> date:
    """Return the day of an instant in a zone. Raises BadInput for an unknown zone."""
    return (_EPOCH + timedelta(seconds=at // SECOND)).astimezone(load(zone)).date()


def parse_day(zone: str, text: str, field: str) -> date:
    """Parse a date, or return the day in a zone of an RFC 3339 time. Raises BadInput for any other text."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = day_at(zone, parse_instant(text, field=field))
    if day.year == date.max.year:
        raise BadInput(f"{field} is in the year {day.year}.", "Give an earlier day.", field=field)
    return day


def begin_of_day(zone: str, day: date) -> Instant:
    """Return the first instant of a day in a zone."""
    wall = datetime.combine(day, time(), tzinfo=load(zone))
    return int((wall - _EPOCH) / timedelta(seconds=1)) * SECOND


def days_between(first: date, last: date) -> list[date]:
    """Return all days from `first` to `last`, both included."""
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]
