"""Durations as users write them: "5m", "1h30m", ISO 8601 or seconds."""

import math
import re
from decimal import Decimal

from horae.env import SECOND, Micros
from horae.errors import BadInput

MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR
WEEK: Micros = 7 * DAY
LONGEST: Micros = 36_525 * DAY  # a hundred years; a longer duration is refused as a likely mistake in the unit

_ACCEPTED = 'Write it as "5m", "1h30m", "1.5s", "250ms", "2d", as ISO 8601 ("PT5M") or as a number of seconds.'
_N = r"(\d+(?:\.\d+)?)"
_SHORT = re.compile(
    rf"(?:{_N}w)? ?(?:{_N}d)? ?(?:{_N}h)? ?(?:{_N}m)? ?(?:{_N}s)? ?(?:{_N}ms)? ?(?:{_N}(?:us|µs))?", re.ASCII
)
_SHORT_UNITS = (WEEK, DAY, HOUR, MINUTE, SECOND, 1000, 1)
_ISO = re.compile(rf"P(?:{_N}W)?(?:{_N}D)?(?:T(?=\d)(?:{_N}H)?(?:{_N}M)?(?:{_N}S)?)?", re.ASCII | re.IGNORECASE)
_ISO_UNITS = (WEEK, DAY, HOUR, MINUTE, SECOND)
_ISO_CALENDAR = re.compile(r"P[\d.]*\d[YM]", re.ASCII | re.IGNORECASE)  # begins with years or months
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


def parse_duration(value: str | int | float, *, field: str = "duration") -> Micros:
    """Read a duration, rounded to whole microseconds; a number counts seconds.

    Raises BadInput for a negative, infinite, empty or very long duration; `field` names its place in the request.
    """
    micros = _from_text(value.strip(), field) if isinstance(value, str) else _from_number(value, field)
    if micros > LONGEST:
        raise BadInput(f"{_shown(value)} is longer than 100 years.", _ACCEPTED, field=field)
    return micros


def format_duration(micros: Micros) -> str:
    """Return the canonical short form: `parse_duration(format_duration(x)) == x`."""
    if micros < 0:
        raise ValueError("a duration is never negative")
    if 0 < micros < SECOND:
        return f"{_decimal(micros, 1000)}ms"
    parts = []
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        count, micros = divmod(micros, unit)
        if count:
            parts.append(f"{count}{name}")
    if micros or not parts:
        parts.append(f"{_decimal(micros, SECOND)}s")
    return "".join(parts)


def _decimal(micros: Micros, unit: Micros) -> str:
    whole, rest = divmod(micros, unit)
    digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0") if rest else str(whole)


def _from_number(value: object, field: str) -> Micros:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{_shown(value)} is not a length of time.", _ACCEPTED, field=field)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f"{_shown(value)} is not a finite length of time.", _ACCEPTED, field=field)
    if value < 0:
        raise BadInput(f"{_shown(value)} is negative; a length of time cannot be.", _ACCEPTED, field=field)
    return round(min(value, LONGEST) * SECOND)  # `min`, because a huge float would overflow; the caller refuses it


def _from_text(text: str, field: str) -> Micros:
    if not text:
        raise BadInput("An empty text is not a length of time.", _ACCEPTED, field=field)
    if text.startswith("-"):
        raise BadInput(f"{_shown(text)} is negative; a length of time cannot be.", _ACCEPTED, field=field)
    if len(text) > 64:
        raise BadInput(f"{_shown(text)} is too long to be a length of time.", _ACCEPTED, field=field)
    if _NUMBER.fullmatch(text):
        return round(Decimal(text) * SECOND)
    if _ISO_CALENDAR.match(text):
        raise BadInput(
            f"{_shown(text)} counts years or months, whose length varies.", "Say it in days or hours.", field=field
        )
    for pattern, units in ((_ISO, _ISO_UNITS), (_SHORT, _SHORT_UNITS)):
        found = pattern.fullmatch(text)
        if found and any(found.groups()):
            return round(sum(Decimal(n) * unit for n, unit in zip(found.groups(), units, strict=True) if n))
    raise BadInput(f"{_shown(text)} is not a length of time.", _ACCEPTED, field=field)


def _shown(value: object) -> str:
    if isinstance(value, int) and abs(value) > LONGEST:
        return "This number"
    shown = str(value).lower() if isinstance(value, bool) else "null" if value is None else repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
