"""Alert rules as users write them."""

import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

from horae.errors import BadInput
from horae.features.alerts.model.rule import KINDS, USUAL_RATE, Kind, Part, Rule, Severity
from horae.model.admission.rate import Rate, parse_rate
from horae.model.base.duration import DAY, MINUTE, format_duration
from horae.model.fields.values import a_duration, a_list, a_number, a_text, an_int, an_object, one_of, refuse_unknown

MOST_SUBJECTS = 100
MOST_CHANNELS = 20
MOST_NOTICES = 10_000
NAMES = {"job": "jobs", "queue": "queues", "worker": "workers"}
COMMON = ("name", "kind", "channels", "severity", "description", "repeatEvery", "atMost", "recovery")
EXAMPLE = 'Write {"name": "nightly", "kind": "failures-in-a-row", "jobs": ["report"], "count": 3, "channels": ["ops"]}.'
_PERCENT = re.compile(r"\s*(\d{1,3})\s*%\s*")
_SUBJECT = re.compile(r"[A-Za-z0-9*?\[\]!._/:@-]{1,200}")


def read_rule(body: Any) -> Rule:
    """A rule from a decoded body; what is wrong is refused with its field."""
    given = {name: value for name, value in an_object(body, "body", EXAMPLE).items() if value is not None}
    if "kind" not in given:
        raise BadInput("A rule needs a kind.", f"It is one of: {', '.join(KINDS)}.", field="kind")
    kind: Kind = one_of(given["kind"], "kind", KINDS)  # type: ignore[assignment]
    about = KINDS[kind]
    named = NAMES[about.subject]
    refuse_unknown(given, (*COMMON, named, *about.parts), f"A rule of kind {kind}")
    parts = {part.field: _part(given.get(name, part.usual), name, part) for name, part in about.parts.items()}
    return Rule(
        kind=kind,
        subjects=_subjects(given.get(named, ["*"]), named),
        channels=_channels(given.get("channels", [])),
        severity=one_of(given.get("severity", "warning"), "severity", get_args(Severity)),  # type: ignore[arg-type]
        description=a_text(given.get("description", ""), "description", most=4096),
        repeat_every=_repeat(given.get("repeatEvery")),
        at_most=_rate(given.get("atMost")),
        recovery=_flag(given.get("recovery", True), "recovery"),
        **parts,
    )


def render_rule(rule: Rule) -> dict[str, Any]:
    """A rule in the API's spelling, without its name."""
    about = KINDS[rule.kind]
    return {
        "kind": rule.kind,
        NAMES[about.subject]: list(rule.subjects),
        **{name: _rendered(rule, part) for name, part in about.parts.items()},
        "channels": list(rule.channels),
        "severity": rule.severity,
        "description": rule.description,
        "repeatEvery": None if rule.repeat_every is None else format_duration(rule.repeat_every),
        "atMost": str(rule.at_most),
        "recovery": rule.recovery,
    }


def _rendered(rule: Rule, part: Part) -> Any:
    value = getattr(rule, part.field)
    if part.field == "share":
        return f"{value}%"
    return format_duration(value) if part.field in ("window", "after") else value


def _part(value: Any, field: str, part: Part) -> Any:
    reader: Mapping[str, Callable[[], Any]] = {
        "share": lambda: _percent(value, field, part),
        "window": lambda: a_duration(value, field, int(part.least), int(part.most)),
        "after": lambda: a_duration(value, field, int(part.least), int(part.most)),
        "minimum": lambda: an_int(value, field, int(part.least), int(part.most)),
        "count": lambda: an_int(value, field, int(part.least), int(part.most)),
        "times": lambda: a_number(value, field, part.least, part.most),
    }
    return reader[part.field]()


def _percent(value: Any, field: str, part: Part) -> int:
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is None or not part.least <= int(found[1]) <= part.most:
        remedy = f'Write it as a percentage, from "{part.least:g}%" to "{part.most:g}%".'
        raise BadInput(f"{field} is {str(value)[:40]!r}, not a share.", remedy, field=field)
    return int(found[1])


def _subjects(value: Any, field: str) -> tuple[str, ...]:
    given = a_list([value] if isinstance(value, str) else value, field, 'Write ["report", "etl-*"].', MOST_SUBJECTS)
    if not given:
        raise BadInput(f"{field} is empty.", 'Name some, or write ["*"] for all.', field=field)
    for i, name in enumerate(given):
        if not _SUBJECT.fullmatch(a_text(name, f"{field}[{i}]", most=200, least=1)):
            raise BadInput(
                f"{field}[{i}] is no name.", "Write a name, or a pattern with * and ?.", field=f"{field}[{i}]"
            )
    return tuple(dict.fromkeys(given))


def _channels(value: Any) -> tuple[str, ...]:
    given = a_list([value] if isinstance(value, str) else value, "channels", 'Write ["ops"].', MOST_CHANNELS)
    return tuple(dict.fromkeys(a_text(name, "channels", most=128, least=1) for name in given))


def _repeat(value: Any) -> int | None:
    return None if value is None else a_duration(value, "repeatEvery", MINUTE, 30 * DAY)


def _rate(value: Any) -> Rate:
    """As many may come at once as come in a span: a storm's first notices are the ones that matter."""
    if value is None:
        return USUAL_RATE
    rate = parse_rate(value, "atMost")
    if not rate.count <= MOST_NOTICES or rate.per < MINUTE:
        raise BadInput(f"atMost cannot be {value!r}.", 'Write "20/1h": so many in a minute or more.', field="atMost")
    return Rate(rate.count, rate.per, rate.count)


def _flag(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{field} is neither true nor false.", "Write true or false.", field=field)
    return value
