"""Conversion of Python values, such as spans, retry policies and exceptions, to the form of job definitions."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, TypeVar

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.executions.job_exceptions import Span, micros_of

T = TypeVar("T")

_SPANS = ("delay", "max")
_RULES = ("retryOn", "giveUpOn")


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """If an option is unknown, raise a TypeError that names the most similar known options."""
    names = tuple(dict.fromkeys(known))
    for name in given:
        if name not in names:
            near = get_close_matches(snake(name), names, n=2)
            remedy = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(names)}"
            raise TypeError(f"{what} has no option {name!r}: {remedy}")


class OptionTypeError(TypeError):
    """A value of the wrong type for an option; `named` adds the option's name."""

    def __init__(self, wanted: str, value: object) -> None:
        shown = repr(value)
        super().__init__(f"takes {wanted}, not {shown if len(shown) <= 60 else f'{shown[:57]}...'}")


def named(subject: str, spell: Callable[[Any], T], value: Any) -> T:
    """Convert a value by `spell`. The message of an error begins with `subject`: the option or call for the value."""
    try:
        return spell(value)
    except OptionTypeError as error:
        raise TypeError(f"{subject} {error}") from None
    except BadInput as error:
        error.detail = f"{subject}: {error.detail}"
        raise


def option(name: str, call: str) -> str:
    """Return the name of an option for error messages."""
    return f"the option {name!r} of {call}"


def items_of(value: Any, wanted: str) -> list[Any]:
    """Return the items of a list or another collection; refuse texts and mappings."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise OptionTypeError(wanted, value)
    return list(value)


def mapping_of(value: Any, wanted: str = "a mapping") -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise OptionTypeError(wanted, value)
    return value


def text_of(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise OptionTypeError("a text", value)
    return value


def snake(name: str) -> str:
    """Return a name of REST in Python's form."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def span_value(span: Span | None) -> str | float | None:
    """Return a span as a JSON value. Raises for an invalid span, so that the traceback shows the user's mistake."""
    if span is None:
        return None
    micros = micros_of(span)
    return micros / SECOND if isinstance(span, timedelta) else span


def timeouts(spans: Mapping[str, Span] | None) -> dict[str, Any] | None:
    """Return a mapping of timeouts with spans as JSON values."""
    if spans is None:
        return None
    return {name: span_value(span) for name, span in mapping_of(spans, "a mapping of spans").items()}


def process_limits(limits: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the limits of a process in the form of definitions."""
    return {
        camel(name): span_value(value) if name == "cpu" else value for name, value in mapping_of(limits or {}).items()
    }


def policy(retry: Any, wanted: str = "a list of delays or a mapping") -> Any:
    """Return a retry policy in the form of definitions: a list of delays, or an object.

    The rules of the object may be given as exception classes.
    """
    if retry is None:
        return None
    if not isinstance(retry, Mapping):
        return [span_value(delay) for delay in items_of(retry, wanted)]
    return {name: _part(name, value) for name, value in ((camel(name), value) for name, value in retry.items())}


def _part(name: str, value: Any) -> Any:
    if name in _SPANS:
        return span_value(value)
    if name in _RULES:
        rules = [value] if isinstance(value, str | type) else items_of(value, f"a list of rules as {snake(name)!r}")
        return [rule(one) for one in rules]
    return value


def rule(named: str | type[BaseException]) -> str:
    """Return a retry rule as a text. For an exception class this is its name, with its module unless it is built in."""
    if isinstance(named, str):
        return named
    if not isinstance(named, type):
        raise OptionTypeError("rules that are texts or classes of exceptions", named)
    return named.__qualname__ if named.__module__ == "builtins" else f"{named.__module__}.{named.__qualname__}"
