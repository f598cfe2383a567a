"""The functions of expressions.

The first parameter of each is the meter, which bounds the work of an expression: larger arguments use up more steps.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from horae.model.expressions.meter import PATTERN_STEPS, EvaluationError, Meter
from horae.model.expressions.values import kind, whole

MOST_PATTERN = 500  # characters
CONVERT_STEPS = 20  # steps to parse or format a number or a time
MATCH_STEPS = 4  # steps for each character at which a pattern is tried
# In texts with fewer characters, Python may compare the part at every position, so `contains` costs additional steps.
NAIVE_SEARCH_BELOW = 30_000
COMPARED_CHARACTERS_A_STEP = 400
_SPAN = re.compile(r"([-+]?)((?:\d{1,12}(?:\.\d{1,9})?(?:h|ms|us|ns|m|s))+)", re.ASCII)
_PIECE = re.compile(r"([\d.]+)(h|ms|us|ns|m|s)")
_MICROS = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1, "ns": 0.001}
_WHOLE = re.compile(r"[-+]?\d{1,19}", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?(?:[eE][-+]?\d{1,4})?|inf|Infinity|NaN)", re.ASCII)

Function = Callable[..., Any]


def _size(meter: Meter, value: Any) -> int:
    if not isinstance(value, str | list | dict):
        raise _unfit("size", value)
    return len(value)


def _string(meter: Meter, value: Any) -> str:
    if isinstance(value, str):
        return value
    meter.take(CONVERT_STEPS)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, int):
        return str(whole(value))
    if isinstance(value, datetime):
        return msgspec.json.encode(value).decode().strip('"')
    if isinstance(value, timedelta):
        return f"{_string(meter, value.total_seconds())}s"
    raise _unfit("string", value)


def _int(meter: Meter, value: Any) -> int:
    meter.take(CONVERT_STEPS)
    if type(value) is int:
        return whole(value)
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, float) and value == value and abs(value) < 2**63:
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return whole(int(value))
    raise _unfit("int", value)


def _double(meter: Meter, value: Any) -> float:
    meter.take(CONVERT_STEPS)
    if type(value) is int:
        return float(whole(value))
    if isinstance(value, float):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    raise _unfit("double", value)


def _bool(meter: Meter, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    found = {"true": True, "false": False}.get(value) if isinstance(value, str) else None
    if found is None:
        raise _unfit("bool", value)
    return found


def _timestamp(meter: Meter, value: Any) -> datetime:
    meter.take(CONVERT_STEPS)
    if isinstance(value, datetime):
        return value
    if isinstance(value, str) and len(value) <= 40:
        try:
            return msgspec.convert(value, datetime).astimezone(UTC)
        except (msgspec.ValidationError, ValueError, OverflowError):
            pass
    raise _unfit("timestamp", value)


def _duration(meter: Meter, value: Any) -> timedelta:
    meter.take(CONVERT_STEPS)
    if isinstance(value, timedelta):
        return value
    found = _SPAN.fullmatch(value) if isinstance(value, str) and len(value) <= 40 else None
    if found is None:
        raise _unfit("duration", value)
    micros = sum(float(number) * _MICROS[unit] for number, unit in _PIECE.findall(found[2]))
    return timedelta(microseconds=-micros if found[1] == "-" else micros)


def _type(meter: Meter, value: Any) -> str:
    return kind(value)


def _dyn(meter: Meter, value: Any) -> Any:
    return value


def _of_texts(name: str, test: Callable[[str, str], bool]) -> Function:
    def call(meter: Meter, text: Any, part: Any) -> bool:
        if not isinstance(text, str) or not isinstance(part, str):
            raise EvaluationError(f"{name}() needs two strings, but got {kind(text)} and {kind(part)}")
        meter.take_text(len(text) + len(part))
        return test(text, part)

    return call


def _contains(meter: Meter, text: Any, part: Any) -> bool:
    if not isinstance(text, str) or not isinstance(part, str):
        raise EvaluationError(f"contains() needs two strings, but got {kind(text)} and {kind(part)}")
    meter.take_text(len(text) + len(part))
    if len(text) < NAIVE_SEARCH_BELOW and len(part) < len(text):
        at_once = len(part) if len(text) < 2500 else min(len(part), 100)
        meter.take((len(text) - len(part)) * at_once // COMPARED_CHARACTERS_A_STEP)
    return part in text


def matches(meter: Meter, text: Any, pattern: Any) -> bool:
    """Return whether a pattern matches somewhere in a text. It takes at most a few microseconds per character."""
    if not isinstance(text, str) or not isinstance(pattern, str):
        raise EvaluationError(f"matches() needs a string and a pattern, but got {kind(text)} and {kind(pattern)}")
    meter.take(PATTERN_STEPS + MATCH_STEPS * len(text))
    return compiled_pattern(pattern)(text)


@lru_cache(maxsize=256)
def compiled_pattern(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern to a function that tests a text. Raises EvaluationError."""
    from horae.model.expressions.patterns import pattern_matcher

    try:
        return pattern_matcher(pattern, MOST_PATTERN)
    except ValueError:
        raise EvaluationError(f"{pattern[:60]!r} is not a valid pattern, or is too large") from None


def _part(name: str, of_time: Callable[[datetime], int], unit: timedelta | None = None) -> Function:
    def call(meter: Meter, value: Any) -> int:
        if isinstance(value, datetime):
            return of_time(value)
        if isinstance(value, timedelta) and unit is not None:
            return int(value / unit)
        wanted = "a timestamp" if unit is None else "a timestamp or a duration"
        raise EvaluationError(f"{name}() needs {wanted}, but got {kind(value)}")

    return call


def _unfit(name: str, value: Any) -> EvaluationError:
    shown = f" {value[:40]!r}" if isinstance(value, str) else ""
    return EvaluationError(f"{name}() does not accept {kind(value)}{shown}")


FUNCTIONS: dict[str, tuple[Function, int]] = {
    "size": (_size, 1), "string": (_string, 1), "int": (_int, 1), "double": (_double, 1), "bool": (_bool, 1),
    "timestamp": (_timestamp, 1), "duration": (_duration, 1), "type": (_type, 1), "dyn": (_dyn, 1),
}  # fmt: skip
_PARTS: dict[str, tuple[Callable[[datetime], int], timedelta | None]] = {
    "getFullYear": (lambda at: at.year, None),
    "getMonth": (lambda at: at.month - 1, None),
    "getDate": (lambda at: at.day, None),
    "getDayOfMonth": (lambda at: at.day - 1, None),
    "getDayOfWeek": (lambda at: at.isoweekday() % 7, None),
    "getDayOfYear": (lambda at: at.timetuple().tm_yday - 1, None),
    "getHours": (lambda at: at.hour, timedelta(hours=1)),
    "getMinutes": (lambda at: at.minute, timedelta(minutes=1)),
    "getSeconds": (lambda at: at.second, timedelta(seconds=1)),
    "getMilliseconds": (lambda at: at.microsecond // 1000, timedelta(milliseconds=1)),
}
METHODS: dict[str, tuple[Function, int]] = {
    "size": (_size, 1),
    "contains": (_contains, 2),
    "startsWith": (_of_texts("startsWith", str.startswith), 2),
    "endsWith": (_of_texts("endsWith", str.endswith), 2),
    "matches": (matches, 2),
    **{name: (_part(name, of_time, unit), 1) for name, (of_time, unit) in _PARTS.items()},
}
