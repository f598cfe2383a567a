"""`schedule` and `triggers`: when a job fires and by which rules, each in one object or a cron text."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, get_args

import msgspec

from horae.env import Instant
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration
from horae.model.base.instant import format_instant, parse_instant
from horae.model.definitions.reading.by_calendar import parse_calendars, render_calendars
from horae.model.executions.parcel import check_item
from horae.model.fields.values import (
    NAME,
    a_duration,
    a_list,
    a_name,
    a_span,
    an_int,
    an_object,
    one_of,
    refuse_unknown,
)
from horae.model.triggers.decisions.external import NO_EVENT_RULES
from horae.model.triggers.decisions.rules import (
    GRACE,
    MOST_QUEUED,
    MOST_REPEATED,
    Misfire,
    Overlap,
    Rules,
    offset_in,
    parse_misfire,
    render_misfire,
)
from horae.model.triggers.decisions.schedule import Kind, kind_of, parse_schedule, render_schedule
from horae.model.triggers.decisions.when import SCHEDULE, When

BY_CALENDAR = ("calendar", "calendars", "outside")
RULES = ("misfire", "overlap", "startAt", "endAt", "maxFires", "jitter", "spread", "grace", "within", *BY_CALENDAR)
BESIDE = ("params", "paused")  # what stands beside a trigger and its rules
MOST_TRIGGERS = 1_000
MOST_FIRES = 2**31 - 1
_TRIGGERS = 'Write a list such as [{"name": "nightly", "cron": "0 2 * * *"}, {"name": "often", "every": "5m"}].'


def parse_when(value: Any, *, key: str, created_at: Instant, name: str = SCHEDULE) -> When:
    """Read a `schedule`, or a trigger without its name: rules stand beside what tells its kind."""
    if not isinstance(value, dict):
        return When(name=name, trigger=parse_schedule(value, key=key, created_at=created_at))
    kind = kind_of({field: part for field, part in value.items() if field not in (*RULES, *BESIDE)})
    _refuse_meaningless(value, kind)
    refuse_unknown(value, (*kind.fields, *(kind.rules or RULES), *BESIDE), "This schedule", "schedule.")
    trigger = kind.read({field: part for field, part in value.items() if field in kind.fields}, key, created_at)
    given = {rule: value[rule] for rule in RULES if value.get(rule) is not None}
    rules = _rules(given, kind, f"{key}/{name}")
    params = _params(value.get("params"), kind)
    return When(name=name, trigger=trigger, rules=rules, params=params, paused=_paused(value.get("paused")))


def name_triggers(value: Any) -> list[dict[str, Any]]:
    """A list of triggers in which each has a name of its own: its kind's, and a number, unless it was given one."""
    listed = a_list(value, "triggers", _TRIGGERS, MOST_TRIGGERS)
    given = [_object(one, f"triggers[{i}]") for i, one in enumerate(listed)]
    taken = {SCHEDULE, *(one["name"] for one in given if isinstance(one.get("name"), str))}
    named: list[dict[str, Any]] = []
    for i, one in enumerate(given):
        with speaking_of(f"triggers[{i}]"):
            name = _name(one, named) if one.get("name") is not None else _unused(_kind_name(one), taken)
        taken.add(name)
        named.append({"name": name, **{field: part for field, part in one.items() if field != "name"}})
    return named


def parse_trigger(named: dict[str, Any], *, key: str, created_at: Instant) -> When:
    """Read one of a job's `triggers`, which has a name."""
    bare = {field: part for field, part in named.items() if field != "name"}
    return parse_when(bare, key=key, created_at=created_at, name=named["name"])


@contextmanager
def speaking_of(field: str) -> Iterator[None]:
    """What is wrong with a schedule is told of this field instead."""
    try:
        yield
    except BadInput as error:
        told = str(error.fields.get("field", SCHEDULE))
        error.fields["field"] = field + told.removeprefix(SCHEDULE) if told.startswith(SCHEDULE) else f"{field}.{told}"
        error.detail = error.detail.replace(f"{SCHEDULE}.", f"{field}.").replace("schedule", "trigger")
        raise


def _object(value: Any, field: str) -> dict[str, Any]:
    if isinstance(value, str):
        return {"cron": value}
    if not isinstance(value, dict):
        raise BadInput(f"{field} is neither a text nor an object.", _TRIGGERS, field=field)
    return value


def _name(trigger: dict[str, Any], others: Sequence[dict[str, Any]]) -> str:
    name = a_name(trigger["name"], "name", NAME)
    if name == SCHEDULE:
        remedy = "Give this trigger another name, or use `schedule` for it."
        raise BadInput('The name "schedule" belongs to the job\'s `schedule`.', remedy, field="name")
    if any(other["name"] == name for other in others):
        raise BadInput(f'Two triggers are named "{name}".', "Name one of them otherwise.", field="name")
    return name


def _kind_name(trigger: dict[str, Any]) -> str:
    return kind_of({field: part for field, part in trigger.items() if field not in (*RULES, *BESIDE)}).name


def _unused(kind: str, taken: set[str]) -> str:
    number = 1
    while (name := kind if number == 1 else f"{kind}-{number}") in taken:
        number += 1
    return name


def _rules(given: dict[str, Any], kind: Kind, key: str) -> Rules:
    start, end = (_instant(given, name) for name in ("startAt", "endAt"))
    if start is not None and end is not None and end <= start:
        raise BadInput("schedule.endAt is not after startAt.", "Nothing would ever fire.", field="schedule.endAt")
    overlap, most_queued = _overlap(given.get("overlap", kind.overlap))
    window = a_duration(given.get("spread", 0), "schedule.spread", 0, DAY)
    if window and given.get("jitter"):
        remedy = "jitter moves each fire by chance, spread gives the trigger one place in the window: take one."
        raise BadInput("Both spread and jitter are given.", remedy, field="schedule.spread")
    return Rules(
        start_at=start,
        end_at=end,
        max_fires=an_int(given["maxFires"], "schedule.maxFires", 1, MOST_FIRES) if "maxFires" in given else None,
        jitter=a_duration(given.get("jitter", 0), "schedule.jitter", 0, DAY),
        misfire=_misfire(given["misfire"]) if "misfire" in given else Misfire(),
        spread=window,
        offset=offset_in(window, key),
        overlap=overlap,
        most_queued=most_queued,
        grace=a_duration(given["grace"], "schedule.grace", 0, DAY) if "grace" in given else GRACE,
        within=a_span(given["within"], "schedule.within") if "within" in given else None,
        **parse_calendars(given),
    )


def _refuse_meaningless(value: dict[str, Any], kind: Kind) -> None:
    """Refuse rules that other kinds of triggers have and this one cannot."""
    if kind.rules is None:
        return
    for rule, reason in NO_EVENT_RULES.items():
        if value.get(rule) is not None:
            told = f"schedule.{rule} says nothing of an event: {reason}."
            raise BadInput(told, f"Leave {rule} out.", field=f"schedule.{rule}")
    if value.get("outside") == "advance":
        remedy = 'Let it "skip" what comes while the calendar is closed, or "postpone" it.'
        raise BadInput("An event cannot be advanced to before it came.", remedy, field="schedule.outside")


def _params(value: Any, kind: Kind) -> dict[str, Any]:
    """What executions are given beyond the job's params; templates that could never be filled are refused."""
    if value is None:
        return {}
    params = an_object(value, "schedule.params", 'Write an object such as {"day": "${fire.at}"}.')
    try:
        check_item(msgspec.json.encode(params), "schedule.params")
    except (TypeError, ValueError):
        remedy = "Use texts, numbers, lists and objects."
        raise BadInput("schedule.params is not JSON.", remedy, field="schedule.params") from None
    kind.check_params(params, "schedule.params")
    return params


def _overlap(value: Any) -> tuple[Overlap, int]:
    """An `overlap` field: a word, or {"queueAll": 10} for at most ten that wait."""
    if isinstance(value, dict) and set(value) == {"queueAll"}:
        return "queueAll", an_int(value["queueAll"], "schedule.overlap.queueAll", 1, MOST_REPEATED)
    if isinstance(value, dict):
        remedy = 'Write "skip", "allow", "queueOne", "queueAll", {"queueAll": 10} or "cancelOther".'
        raise BadInput("schedule.overlap has an object that is none.", remedy, field="schedule.overlap")
    chosen: Any = one_of(value, "schedule.overlap", get_args(Overlap))
    return chosen, MOST_QUEUED


def _paused(value: Any) -> bool:
    if value is not None and not isinstance(value, bool):
        raise BadInput("schedule.paused is true or false.", 'Write "paused": true.', field="schedule.paused")
    return bool(value)


def _instant(given: dict[str, Any], name: str) -> Instant | None:
    return parse_instant(given[name], field=f"schedule.{name}") if name in given else None


def _misfire(value: Any) -> Misfire:
    try:
        return parse_misfire(value)
    except BadInput as error:
        error.fields["field"] = f"schedule.{error.fields['field']}"
        raise


def render_when(when: When) -> dict[str, Any]:
    """The object that reads as this trigger, without its name; whether it is paused now is not part of it."""
    spelled = render_schedule(when.trigger)
    rules, standard = when.rules, Rules()
    given = {
        "startAt": None if rules.start_at is None else format_instant(rules.start_at),
        "endAt": None if rules.end_at is None else format_instant(rules.end_at),
        "maxFires": rules.max_fires,
        "jitter": format_duration(rules.jitter) if rules.jitter else None,
        "spread": format_duration(rules.spread) if rules.spread else None,
        "misfire": None if rules.misfire == standard.misfire else render_misfire(rules.misfire),
        "overlap": None if rules.overlap == kind_of(_as_object(spelled)).overlap else _render_overlap(rules),
        "grace": None if rules.grace == standard.grace else format_duration(rules.grace),
        "within": None if rules.within is None else format_duration(rules.within),
        "params": when.params or None,
        **render_calendars(rules),
    }
    return _as_object(spelled) | {rule: value for rule, value in given.items() if value is not None}


def _render_overlap(rules: Rules) -> str | dict[str, Any]:
    return {"queueAll": rules.most_queued} if rules.overlap == "queueAll" else rules.overlap


def _as_object(spelled: str | dict[str, Any]) -> dict[str, Any]:
    return {"cron": spelled} if isinstance(spelled, str) else spelled
