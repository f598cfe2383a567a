"""How Python's values are spelled in a job's definition: spans, policies of retries, exceptions."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from horae.env import SECOND
from horae.model.signals import Span, micros_of

_SPANS = ("delay", "max")
_RULES = ("retryOn", "giveUpOn")


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise a TypeError for an option that does not exist, with the nearest one that does."""
    names = tuple(dict.fromkeys(known))
    for name in given:
        if name not in names:
            near = get_close_matches(snake(name), names, n=2)
            remedy = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(names)}"
            raise TypeError(f"{what} has no option {name!r}: {remedy}")


def snake(name: str) -> str:
    """Spell a name of REST as Python does."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def spelled(span: Span | None) -> str | float | None:
    """A span as JSON carries it; a wrong one is refused here, where it stands."""
    if span is None:
        return None
    micros = micros_of(span)
    return micros / SECOND if isinstance(span, timedelta) else span


def timeouts(spans: Mapping[str, Span] | None) -> dict[str, Any] | None:
    """Each of them as a span."""
    return None if spans is None else {name: spelled(span) for name, span in spans.items()}


def process_limits(limits: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a process may use, in the spelling of definitions."""
    return {camel(name): spelled(value) if name == "cpu" else value for name, value in (limits or {}).items()}


def policy(retry: Any) -> Any:
    """How to retry: a list of delays, or an object whose rules may name exceptions by their classes."""
    if retry is None:
        return None
    if not isinstance(retry, Mapping):
        return [spelled(delay) for delay in retry]
    return {name: _part(name, value) for name, value in ((camel(name), value) for name, value in retry.items())}


def _part(name: str, value: Any) -> Any:
    if name in _SPANS:
        return spelled(value)
    if name in _RULES:
        return [rule(one) for one in ([value] if isinstance(value, str | type) else value)]
    return value


def rule(named: str | type[BaseException]) -> str:
    """A rule about failures; a class is called by its name, with its module unless it is Python's own."""
    if isinstance(named, str):
        return named
    return named.__qualname__ if named.__module__ == "builtins" else f"{named.__module__}.{named.__qualname__}"
