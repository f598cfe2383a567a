"""Readers of single values in a definition: each returns the stored form or raises BadInput with path and remedy."""

import math
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from horae.env import Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration, parse_duration
from horae.model.executions.parcel import MAX_DEPTH
from horae.model.expressions.template import compile_template

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}")
MOST_TAGS = 32
MOST_TAG = 256
MOST_TEMPLATE = 1024
KNOWN = frozenset({"params", "job", "tags"})  # names that a key template may use
# Tabs, line breaks, and the direction marks that Hebrew and Arabic need are allowed.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


# Names of fields in other schedulers, or of other definitions, each with the name that Horae has for it.
INSTEAD = {"deadline": "within", "sla": "within", "with": "params"}


def refuse_unknown(given: Mapping[Any, Any], known: Iterable[str], what: str, prefix: str = "") -> None:
    """Refuse an unknown field, and suggest the nearest known one."""
    names = tuple(dict.fromkeys(known))
    for name in given:
        if name in names:
            continue
        shown = str(name)[:40]
        near = [word for word in (INSTEAD.get(shown, ""),) if word in names]
        near = near or get_close_matches(shown.replace("_", ""), names, n=1) or get_close_matches(shown, names, n=1)
        remedy = f'Did you mean "{near[0]}"?' if near else f"The fields are: {', '.join(names)}."
        raise BadInput(f"{what} has no field {shown!r}.", remedy, field=f"{prefix}{shown}")


MOST_WITHIN = 400 * DAY  # the longest span from the due time of an execution to its deadline


def an_object(value: Any, field: str, remedy: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{field} is {kind_of(value)}, not an object.", remedy, field=field)
    if not all(isinstance(name, str) for name in value):
        raise BadInput(f"{field} has a name that is not a text.", "Put names in quotes.", field=field)
    return value


def shallow(value: Any, field: str) -> None:
    """Refuse a value that is nested too deeply to be read safely."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            member
            for parent in level
            for member in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(member, dict | list)
        ]
        if not level:
            return
    raise BadInput(f"{field} is nested deeper than {MAX_DEPTH}.", "Flatten it.", field=field)


def a_list(value: Any, field: str, remedy: str, most: int) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise BadInput(f"{field} is {kind_of(value)}, not a list.", remedy, field=field)
    if len(value) > most:
        raise BadInput(f"{field} has {len(value)} entries.", f"At most {most} are allowed.", field=field)
    return list(value)


def a_text(value: Any, field: str, *, most: int, least: int = 0) -> str:
    """Read a text without control characters other than tabs and line breaks."""
    if not isinstance(value, str):
        raise BadInput(f"{field} is {kind_of(value)}, not a text.", "Put it in quotes.", field=field)
    if len(value) < least:
        raise BadInput(f"{field} is empty.", "Give a value, or remove the field.", field=field)
    if len(value) > most:
        raise BadInput(f"{field} has {len(value)} characters.", f"At most {most} are allowed.", field=field)
    if _CONTROL.search(value) or _unencodable(value):
        raise BadInput(f"{field} contains a character that is not text.", "Remove control characters.", field=field)
    return value


def a_name(value: Any, field: str, pattern: "re.Pattern[str]") -> str:
    """Read the name of a job or queue."""
    text = a_text(value, field, most=1000, least=1)
    if not pattern.fullmatch(text):
        shown = text if len(text) <= 60 else text[:57] + "..."
        remedy = "Use 1 to 128 letters, digits, dots, dashes and underscores, beginning with a letter or digit."
        raise BadInput(f"{shown!r} is not a valid {field}.", remedy, field=field)
    if looks_like_an_id(text):
        raise BadInput(f"{text!r} looks like an id.", "Choose a name that cannot be taken for an id.", field=field)
    return text


def a_key(value: Any, field: str) -> str:
    """Read a key template."""
    text = a_text(value, field, most=MOST_TEMPLATE, least=1)
    compile_template(text, field, KNOWN)
    return text


def looks_like_an_id(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False


def an_int(value: Any, field: str, least: int, most: int, remedy: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{field} is {kind_of(value)}, not a whole number.", remedy or _range(least, most), field=field)
    if not least <= value <= most:
        shown = value if abs(value) < 10**12 else "a number of this size"
        raise BadInput(f"{field} cannot be {shown}.", remedy or _range(least, most), field=field)
    return value


def a_number(value: Any, field: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{field} is {kind_of(value)}, not a number.", _range(least, most), field=field)
    if not (math.isfinite(value) and least <= value <= most):
        shown = value if abs(value) < 10**12 else "a number of this size"
        raise BadInput(f"{field} cannot be {shown}.", _range(least, most), field=field)
    return float(value)


def a_duration(value: Any, field: str, least: Micros, most: Micros) -> Micros:
    micros = parse_duration(value, field=field)
    if not least <= micros <= most:
        shown = f"Use a value from {format_duration(least)} to {format_duration(most)}."
        raise BadInput(f"{field} cannot be {format_duration(micros)}.", shown, field=field)
    return micros


def one_of(value: Any, field: str, choices: Iterable[str]) -> str:
    known = tuple(choices)
    if not isinstance(value, str) or value not in known:
        near = get_close_matches(value, known, n=1) if isinstance(value, str) else []
        remedy = f'Did you mean "{near[0]}"?' if near else f"Choose one of: {', '.join(known)}."
        shown = repr(value[:40]) if isinstance(value, str) else kind_of(value)
        raise BadInput(f"{field} cannot be {shown}.", remedy, field=field)
    return value


def tags(value: Any, field: str = "tags") -> dict[str, str]:
    """Read tags, as a list of names or as an object of names and values."""
    remedy = 'Write ["nightly"] or {"team": "data"}.'
    if isinstance(value, list):
        value = {a_text(tag, f"{field}[{i}]", most=64, least=1): "" for i, tag in enumerate(value)}
    given = an_object(value, field, remedy)
    if len(given) > MOST_TAGS:
        raise BadInput(f"{field} has {len(given)} entries.", f"At most {MOST_TAGS} are allowed.", field=field)
    for name in given:
        if not TAG.fullmatch(name):
            rule = "Use 1 to 63 letters, digits, dots, dashes, underscores and slashes."
            raise BadInput(f"{name[:60]!r} is not a valid tag.", rule, field=f"{field}.{name[:60]}")
    return {name: a_text(text, f"{field}.{name}", most=MOST_TAG) for name, text in given.items()}


def kind_of(value: Any) -> str:
    """Return the JSON type of a value in words, with an article, as in "a list"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds: tuple[tuple[Any, str], ...] = (
        (str, "a text"), (int | float, "a number"), (list, "a list"), (dict, "an object"),
    )  # fmt: skip
    return next((word for kind, word in kinds if isinstance(value, kind)), f"a {type(value).__name__}")


def _unencodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _range(least: float, most: float) -> str:
    return f"Use a value from {least} to {most}."
