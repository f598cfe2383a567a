"""The outcome for a trigger or a calendar: its stored and shown forms, and its fires or openings."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.base.duration import DAY
from horae.model.definitions.reading.schedule import name_triggers, parse_when, render_when
from horae.model.triggers.calendars.compiled import BITS, compile_times
from horae.model.triggers.calendars.read import read_calendar, references_in, render_times
from horae.model.triggers.calendars.values import references_of
from horae.model.triggers.calendars.view import describe_times
from horae.model.triggers.decisions.count import count_fires
from horae.model.triggers.decisions.decide import due_after, upcoming
from horae.model.triggers.decisions.schedule import kind_of

NOW = 1_800_000_000 * 1_000_000


def _plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def _trigger(body: Any) -> list[Any]:
    """Parse it as a job's `schedule`, or as one of its `triggers` if it has a name."""
    named = name_triggers([body])[0]["name"] if isinstance(body, dict) and "name" in body else "schedule"
    spelled = {name: value for name, value in body.items() if name != "name"} if isinstance(body, dict) else body
    when = parse_when(spelled, key="default/report", created_at=NOW, name=named)
    shown = render_when(when)
    fires = [upcoming(when.trigger, when.rules, NOW), due_after(when.trigger, when.rules, NOW)]
    counts = [count_fires(when.trigger, when.rules, NOW, NOW + days * DAY) for days in (1, 400)]
    stored = [_plain(when.trigger), _plain(when.rules), when.params, when.paused, when.name]
    return [stored, shown, kind_of(shown).name, when.trigger.words, fires, counts]


def _calendar(body: Any) -> list[Any]:
    """Parse it as the body of a request."""
    times, description = read_calendar("office", body)
    others = {name: compile_times(_work(), {}, name) for name in references_of(times)}
    calendar = compile_times(times, others, "office")
    openings = [] if "Business" in repr(times) else calendar.bucket(NOW // SECOND >> BITS)
    names = [sorted(references_of(times)), sorted(references_in(body))]
    return [repr(times), render_times(times), describe_times(times), description, names, openings[:3], len(openings)]


def _work() -> Any:
    return read_calendar("work", {"hours": "MON-FRI 08:00-18:00"})[0]


ANSWERS: dict[str, Callable[[Any], list[Any]]] = {"triggers": _trigger, "calendars": _calendar}


def answer(noun: str, body: Any) -> list[Any]:
    """Return the outcome for a body, or the refusal."""
    try:
        return ["accepted", *ANSWERS[noun](body)]
    except BadInput as error:
        return ["refused", error.detail, error.remedy, {name: str(value) for name, value in error.fields.items()}]
