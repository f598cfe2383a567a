"""`schedule` and `triggers`: the triggers of a job and their rules, each as one object or a cron text."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from msgspec import structs

from horae.env import Instant
from horae.errors import BadInput
from horae.model.fields.values import NAME, a_list, a_name, refuse_unknown
from horae.model.triggers.decisions.named_trigger import NAMED_TRIGGER, SCHEDULE, NamedTrigger
from horae.model.triggers.decisions.rules import RULES, Overlap, Rules, check_rules, offset_in
from horae.model.triggers.decisions.schedule import OTHER_FIELDS, TriggerKind, as_object, kind_of, render_schedule
from horae.model.triggers.decisions.values import Timed

MOST_TRIGGERS = 1_000
# The word `schedule` in an error, and quoted texts, which the user wrote or which name the field `schedule` itself.
_WORD_OR_QUOTED = re.compile(rf"""\"[^"]*"|(?<!\w)'[^']*'|`[^`]*`|\b{SCHEDULE}\b""")
_TRIGGERS = 'Write a list such as [{"name": "nightly", "cron": "0 2 * * *"}, {"name": "often", "every": "5m"}].'


def parse_when(value: Any, *, key: str, created_at: Instant, name: str = SCHEDULE) -> NamedTrigger:
    """Read a `schedule`, or a trigger without its name: an object with the fields of its kind and its rules."""
    given = as_object(value)
    kind = _kind_of(given)
    _refuse_meaningless(given, kind)
    refuse_unknown(given, kind.names, "This schedule", "schedule.")
    trigger = kind.read({field: part for field, part in given.items() if field in kind.table.names}, key, created_at)
    beside = NAMED_TRIGGER.read({field: part for field, part in given.items() if field in OTHER_FIELDS}, "schedule.")
    if "params" in beside:
        kind.check_params(beside["params"], "schedule.params")
    return NamedTrigger(name=name, trigger=trigger, rules=_rules(given, kind, f"{key}/{name}"), **beside)


def name_triggers(value: Any) -> list[dict[str, Any]]:
    """Give each trigger in a list a unique name: its own, or its kind with a number."""
    listed = a_list(value, "triggers", _TRIGGERS, MOST_TRIGGERS)
    given = [_object(one, f"triggers[{i}]") for i, one in enumerate(listed)]
    taken = {SCHEDULE, *(one["name"] for one in given if isinstance(one.get("name"), str))}
    named: list[dict[str, Any]] = []
    for i, one in enumerate(given):
        with errors_under(f"triggers[{i}]"):
            name = _name(one, named) if one.get("name") is not None else _unused(_kind_of(one).name, taken)
        taken.add(name)
        named.append({"name": name, **{field: part for field, part in one.items() if field != "name"}})
    return named


def parse_trigger(named: dict[str, Any], *, key: str, created_at: Instant) -> NamedTrigger:
    """Read a named trigger from a job's `triggers`."""
    bare = {field: part for field, part in named.items() if field != "name"}
    return parse_when(bare, key=key, created_at=created_at, name=named["name"])


@contextmanager
def errors_under(field: str) -> Iterator[None]:
    """Make errors about the field `schedule` name this field instead."""
    try:
        yield
    except BadInput as error:
        named = str(error.fields.get("field", SCHEDULE))
        in_schedule = named.startswith(SCHEDULE)
        error.fields["field"] = field + named.removeprefix(SCHEDULE) if in_schedule else f"{field}.{named}"
        detail = error.detail.replace(f"{SCHEDULE}.", f"{field}.")
        error.detail = _WORD_OR_QUOTED.sub(lambda found: "trigger" if found[0] == SCHEDULE else found[0], detail)
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
        raise BadInput(f'Two triggers are named "{name}".', "Rename one of them.", field="name")
    return name


def _kind_of(trigger: dict[str, Any]) -> TriggerKind:
    return kind_of({field: part for field, part in trigger.items() if field not in (*RULES.names, *OTHER_FIELDS)})


def _unused(kind: str, taken: set[str]) -> str:
    number = 1
    while (name := kind if number == 1 else f"{kind}-{number}") in taken:
        number += 1
    return name


def _rules(given: dict[str, Any], kind: TriggerKind, key: str) -> Rules:
    said = {rule: part for rule, part in given.items() if part is not None and rule in RULES.names}
    read = RULES.read(said, "schedule.") if said else {}
    rules = Rules(**{"overlap": kind.overlap, **read})
    check_rules(rules)
    return structs.replace(rules, offset=offset_in(rules.spread, key))


def _refuse_meaningless(value: dict[str, Any], kind: TriggerKind) -> None:
    """Refuse rules that have no meaning for this kind of trigger."""
    if kind.is_timed:
        return
    for row in RULES.rows:
        if row.field.no_event and value.get(row.name) is not None:
            told = f"schedule.{row.name} has no meaning for an event: {row.field.no_event}."
            raise BadInput(told, f"Leave {row.name} out.", field=f"schedule.{row.name}")
    if value.get("outside") == "advance":
        remedy = 'Let it "skip" events while the calendar is closed, or "postpone" them.'
        raise BadInput("An event cannot be advanced to a time before its arrival.", remedy, field="schedule.outside")


def render_when(when: NamedTrigger) -> dict[str, Any]:
    """Write a trigger without its name and without its pause."""
    rules = _render_rules(when.rules, "skip" if isinstance(when.trigger, Timed) else "allow")
    return {**as_object(render_schedule(when.trigger)), **rules, **({"params": when.params} if when.params else {})}


@lru_cache(1024)
def _render_rules(rules: Rules, overlap: Overlap) -> dict[str, Any]:
    """Write the rules that differ from the defaults; `overlap` is the default overlap of this kind of trigger."""
    shown = {rule: part for rule, part in RULES.write_changed(rules).items() if part is not None and rule != "overlap"}
    return shown if rules.overlap == overlap else {**shown, "overlap": RULES.write(rules)["overlap"]}
