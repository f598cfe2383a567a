"""Values of expressions: JSON values, timestamps and durations, with comparison, arithmetic and formatting."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from horae.model.base.paths import RemoteValue
from horae.model.expressions.meter import CHARACTERS_A_STEP, ELEMENTS_A_STEP, EvaluationError, Meter, MissingName

_KINDS = {
    type(None): "null_type", bool: "bool", int: "int", float: "double", str: "string", list: "list", dict: "map",
    RemoteValue: "map", datetime: "timestamp", timedelta: "duration",
}  # fmt: skip
KINDS = frozenset(_KINDS.values())
KEY_STEPS = 3  # steps for each member of a map that is compared or written out
MOST_SHOWN = 60  # characters of a name in a message
_LEAST, _MOST = -(2**63), 2**63 - 1


def kind(value: Any) -> str:
    """Return the name of a value's type."""
    return _KINDS.get(type(value)) or type(value).__name__


def whole(value: int) -> int:
    """Check that a whole number fits into 64 bits. Raises EvaluationError."""
    if _LEAST <= value <= _MOST:
        return value
    raise EvaluationError("a whole number is out of range")


def equal(meter: Meter, left: Any, right: Any) -> bool:
    """Return whether two values are equal; integers and floats are compared as numbers."""
    pairs = [(left, right)]
    meter.take(2)
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            meter.take(2 * len(a))
            pairs.extend(zip(a, b, strict=True))
        elif isinstance(a, dict) and isinstance(b, dict):
            if len(a) != len(b):
                return False
            take_keys(meter, a)
            if a.keys() != b.keys():
                return False
            pairs.extend((value, b[key]) for key, value in a.items())
        elif isinstance(a, str) and isinstance(b, str) and len(a) == len(b):
            meter.take_text(len(a))  # even if the texts differ, because the difference may be at their ends
            if a != b:
                return False
        elif not _alike(a, b) or a != b:
            return False
    return True


def take_key(meter: Meter, key: Any) -> None:
    """Spend the steps to look up a key: a string is compared with other keys."""
    if isinstance(key, str):
        meter.take_text(len(key))


def take_keys(meter: Meter, holder: dict[Any, Any]) -> None:
    """Spend the steps to iterate over a map with its keys."""
    try:
        characters = sum(map(len, holder))
    except TypeError:  # a map made by an expression may have numbers as keys
        characters = sum(len(key) for key in holder if isinstance(key, str))
    meter.take(KEY_STEPS * len(holder) + characters // CHARACTERS_A_STEP)


def _alike(a: Any, b: Any) -> bool:
    """Return whether two single values have comparable types: a boolean is not a number."""
    return type(a) is type(b) or {type(a), type(b)} == {int, float}


def contains(meter: Meter, holder: Any, value: Any) -> bool:
    """Return whether a list has an element, or a map has a key."""
    if isinstance(holder, dict):
        take_key(meter, value)
        return type(value) in (str, int) and value in holder
    if not isinstance(holder, list):
        raise EvaluationError(f"`in` needs a list or a map, but got {kind(holder)}")
    return any(equal(meter, value, element) for element in holder)


def ordered(meter: Meter, a: Any, b: Any, compare: Callable[[Any, Any], bool]) -> bool:
    """Compare two values with an operator such as `<`."""
    if not _alike(a, b) or a is None or isinstance(a, list | dict):
        raise EvaluationError(f"{kind(a)} and {kind(b)} cannot be ordered")
    if isinstance(a, str):
        meter.take_text(min(len(a), len(b)))
    return compare(a, b)


def added(meter: Meter, a: Any, b: Any) -> Any:
    """Return the sum of numbers, texts, lists, durations, or of a timestamp and a duration."""
    both = type(a), type(b)
    if both == (int, int):
        return whole(a + b)
    if both == (float, float):
        return a + b
    if both == (str, str):
        meter.take_text(len(a) + len(b))
        return a + b
    if both == (list, list):
        meter.take((len(a) + len(b)) // ELEMENTS_A_STEP)
        return a + b
    if both in ((datetime, timedelta), (timedelta, datetime), (timedelta, timedelta)):
        return a + b
    raise _mismatch("+", a, b)


def subtracted(meter: Meter, a: Any, b: Any) -> Any:
    """Return the difference of numbers, timestamps or durations."""
    both = type(a), type(b)
    if both == (int, int):
        return whole(a - b)
    if both in ((float, float), (datetime, datetime), (datetime, timedelta), (timedelta, timedelta)):
        return a - b
    raise _mismatch("-", a, b)


def multiplied(meter: Meter, a: Any, b: Any) -> Any:
    """Return the product of two numbers of one type."""
    if type(a) is not type(b) or type(a) not in (int, float):
        raise _mismatch("*", a, b)
    return whole(a * b) if type(a) is int else a * b


def divided(meter: Meter, a: Any, b: Any) -> Any:
    """Return the quotient of two numbers of one type; integer division rounds towards zero."""
    if type(a) is int and type(b) is int:
        if b == 0:
            raise EvaluationError("division by zero")
        return whole(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
    if type(a) is not float or type(b) is not float:
        raise _mismatch("/", a, b)
    if b == 0.0:
        return float("nan") if a == 0.0 or a != a else float("inf") * (1 if a > 0 else -1)
    return a / b


def remainder(meter: Meter, a: Any, b: Any) -> Any:
    """Return the remainder of an integer division, with the sign of the first operand."""
    if type(a) is not int or type(b) is not int:
        raise _mismatch("%", a, b)
    if b == 0:
        raise EvaluationError("division by zero")
    return abs(a) % abs(b) * (1 if a >= 0 else -1)


def _mismatch(sign: str, a: Any, b: Any) -> EvaluationError:
    return EvaluationError(f"there is no {kind(a)} {sign} {kind(b)}; convert one with int(), double() or string()")


def at(meter: Meter, holder: Any, place: Any) -> Any:
    """Return the element of a list at an index, or the member of a map with a key."""
    if isinstance(holder, dict):
        if type(place) not in (str, int):
            raise EvaluationError(f"the key of a map is a string or an int, not {kind(place)}")
        take_key(meter, place)
        return member(holder, place)
    if not isinstance(holder, list):
        raise EvaluationError(f"{kind(holder)} has no elements")
    if type(place) is not int:
        raise EvaluationError(f"the index of a list is an int, not {kind(place)}")
    if not 0 <= place < len(holder):
        raise MissingName(f"there is no element {place} in a list of {len(holder)}")
    return holder[place]


def member(holder: Any, name: Any) -> Any:
    """Return the member of a map."""
    if not isinstance(holder, dict):
        raise EvaluationError(f"{kind(holder)} has no {shown(name)}")
    if isinstance(holder, RemoteValue):
        raise EvaluationError(f"it {holder.why}")
    try:
        return holder[name]
    except KeyError:
        raise MissingName(f"there is no {shown(name)}") from None


def shown(name: Any) -> str:
    """Quote the beginning of a name or an index for a message; quoting a long text would cost time."""
    return repr(name[:MOST_SHOWN] if isinstance(name, str) else name)


def weigh(meter: Meter, value: Any) -> None:
    """Spend the steps to write out a value as JSON. A list or map that occurs in several places counts each time."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            meter.take_text(len(part))
        elif isinstance(part, list):
            meter.take(2 * len(part))
            parts.extend(part)
        elif isinstance(part, dict):
            take_keys(meter, part)
            parts.extend(part.values())
