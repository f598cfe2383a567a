"""Conversion of instants: RFC 3339 text outside, integer microseconds UTC inside."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from horae.env import SECOND, Instant
from horae.errors import BadInput

EARLIEST: Instant = 0  # 1970-01-01T00:00:00Z
END_OF_RANGE: Instant = 7_289_654_400 * SECOND  # 2201-01-01T00:00:00Z, the first instant that is not valid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,32}))?(?:([Zz])|([+-])(\d\d):(\d\d))?", re.ASCII
)
_EXAMPLE = 'Write it as "2026-11-15T08:00:00Z" or with an offset, as "2026-11-15T09:00:00+01:00".'


def parse_instant(text: str, *, field: str = "at") -> Instant:
    """Read an RFC 3339 time with an offset, to the microsecond, from 1970 to 2200.

    A time without an offset is refused, because it means a different instant in every zone.
    """
    found = _RFC3339.fullmatch(text.strip()) if isinstance(text, str) and len(text) <= 80 else None
    if found is None:
        raise BadInput(f"{_shown(text)} is not an RFC 3339 time.", _EXAMPLE, field=field)
    date, clock, fraction, zulu, sign, hours, minutes = found.groups()
    if not zulu and not sign:
        remedy = f'Add "Z" for UTC, or an offset. {_EXAMPLE}'
        raise BadInput(f"{_shown(text)} does not say its offset from UTC.", remedy, field=field)
    if fraction and len(fraction.rstrip("0")) > 6:
        raise BadInput(f"{_shown(text)} is finer than a microsecond.", "Give at most six decimals.", field=field)
    offset = 0 if zulu else _offset(text, sign, int(hours), int(minutes), field)
    instant = _civil(text, date, clock, field) - offset * SECOND + int((fraction or "0").ljust(6, "0")[:6])
    if not EARLIEST <= instant < END_OF_RANGE:
        raise BadInput(f"{_shown(text)} is outside the years 1970 to 2200.", _EXAMPLE, field=field)
    return instant


def format_instant(instant: Instant) -> str:
    """Return RFC 3339 in UTC, with milliseconds or microseconds only when they are not zero."""
    second, rest = divmod(instant, SECOND)
    if not rest:
        return f"{_second(second)}Z"
    return f"{_second(second)}.{rest:06d}Z" if rest % 1000 else f"{_second(second)}.{rest // 1000:03d}Z"


@lru_cache(4096)
def _second(second: int) -> str:
    """Format a second since 1970. The result is cached, because values read together often share their second."""
    return (_EPOCH + timedelta(seconds=second)).replace(tzinfo=None).isoformat(timespec="seconds")


def _civil(text: str, date: str, clock: str, field: str) -> Instant:
    """Return the instant at which UTC clocks show this date and time."""
    try:
        parts = (int(part) for part in (*date.split("-"), *clock.split(":")))
        return (datetime(*parts, tzinfo=UTC) - _EPOCH) // _MICRO  # type: ignore[misc, arg-type]
    except ValueError as error:
        reason = "leap seconds are not counted" if clock.endswith(":60") else str(error)
        raise BadInput(f"{_shown(text)} is not a time that exists: {reason}.", _EXAMPLE, field=field) from None


def _offset(text: str, sign: str, hours: int, minutes: int, field: str) -> int:
    if hours > 23 or minutes > 59:
        raise BadInput(f"{_shown(text)} has an offset over 23:59.", _EXAMPLE, field=field)
    return (hours * 3600 + minutes * 60) * (-1 if sign == "-" else 1)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
