"""Triggers as the API spells them: a cron string or an object, as {"every": "5m"}, {"at": "..."}, {"event": "..."}.

Each kind is one entry of KINDS, known by the field that only it has.
"""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, get_args

from msgspec import Struct

from horae.env import Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import format_duration, parse_duration
from horae.model.base.instant import format_instant, parse_instant
from horae.model.triggers.cron.fire import DstGap, DstOverlap
from horae.model.triggers.cron.parse import Dialect, needs_key, parse_cron
from horae.model.triggers.cron.zone import load as load_zone
from horae.model.triggers.decisions.external import (
    EVENT_FIELDS,
    EVENT_RULES,
    WATCH_FIELDS,
    Event,
    Watch,
    read_event_trigger,
    read_watch_trigger,
    render_event,
    render_watch,
)
from horae.model.triggers.decisions.params import check_fire_params
from horae.model.triggers.decisions.rules import GRACE, Overlap
from horae.model.triggers.decisions.values import Cron, Interval, Once, Trigger, next_fire
from horae.model.triggers.events.params import check_params

SHORTEST_INTERVAL: Micros = 100_000

_ACCEPTED = (
    'Write a cron expression such as "0 9 * * MON-FRI", {"every": "5m"}, {"at": "2026-11-15T08:00:00Z"} or '
    '{"cron": "0 9 * * *", "timezone": "Europe/Paris"}; {"event": "upload"}, {"webhook": true} or {"watch": "s3://..."}.'
)


def parse_schedule(value: str | dict[str, Any], *, key: str, created_at: Instant) -> Trigger:
    """Read a `schedule` field or refuse it with the reason and a remedy.

    `key` is namespace/job, by which `H` spreads. `created_at` is when the job was made: an interval without an anchor
    counts from there, so an edit of the job does not shift it.
    """
    if isinstance(value, str):
        value = {"cron": value}
    if not isinstance(value, dict):
        raise BadInput("A schedule is a text or an object.", _ACCEPTED, field="schedule")
    kind = kind_of(value)
    _refuse_unknown(value, kind.fields)
    return kind.read(value, key, created_at)


def kind_of(value: dict[str, Any]) -> "Kind":
    """Which kind of trigger an object spells, by the one field that tells; others may stand beside it."""
    kinds = [kind for kind in KINDS if kind in value and not (kind == "webhook" and "event" in value)]
    if len(kinds) > 1:
        raise BadInput(f"A schedule has one of {' and '.join(kinds)}, not both.", _ACCEPTED, field="schedule")
    if not kinds:
        _refuse_unknown(value, tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.fields)))
        raise BadInput(f"A schedule needs {_either(tuple(KINDS))}.", _ACCEPTED, field="schedule")
    return KINDS[kinds[0]]


def _either(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def render_schedule(trigger: Trigger) -> str | dict[str, Any]:
    """The `schedule` field that reads as this trigger, as a user would write it."""
    if isinstance(trigger, Interval):
        anchor = {} if trigger.anchor is None else {"anchor": format_instant(trigger.anchor)}
        return {"every": format_duration(trigger.every)} | anchor
    if isinstance(trigger, Once):
        return {"at": format_instant(trigger.at)}
    if isinstance(trigger, Event):
        return render_event(trigger)
    if isinstance(trigger, Watch):
        return render_watch(trigger)
    chosen = {
        "timezone": (trigger.timezone, "UTC"),
        "dialect": (trigger.dialect, "unix"),
        "dstGap": (trigger.dst_gap, "shift"),
        "dstOverlap": (trigger.dst_overlap, "first"),
    }
    extra = {name: given for name, (given, default) in chosen.items() if given != default}
    return {"cron": trigger.expression} | extra if extra else trigger.expression


def _parse_cron(value: dict[str, Any], key: str, created_at: Instant) -> Trigger:
    text = " ".join(_text(value, "cron", "").split())
    macro, _, rest = text.partition(" ")
    if macro.lower() == "@every":
        _refuse_unknown(value, ("cron",))
        return _parse_every({"every": rest}, key, created_at)
    cron = Cron(
        expression=text,
        timezone=_text(value, "timezone", "UTC"),
        dialect=_one_of(value, "dialect", "unix", Dialect),
        dst_gap=_one_of(value, "dstGap", "shift", DstGap),
        dst_overlap=_one_of(value, "dstOverlap", "first", DstOverlap),
        key=key if needs_key(text) else "",
    )
    parse_cron(cron.expression, cron.dialect, cron.key)
    load_zone(cron.timezone)
    if next_fire(cron, created_at) is None:
        remedy = "Give a later year, or leave the schedule out and trigger the job."
        raise BadInput(f'"{text[:60]}" has passed and would never fire.', remedy, field="schedule")
    return cron


def _parse_every(value: dict[str, Any], key: str, created_at: Instant) -> Trigger:
    every = parse_duration(value["every"], field="schedule.every")
    if every < SHORTEST_INTERVAL:
        shortest = format_duration(SHORTEST_INTERVAL)
        remedy = f'Write {shortest} or longer, as {{"every": "5m"}}.'
        raise BadInput(f"An interval is at least {shortest}.", remedy, field="schedule.every")
    anchor = value.get("anchor")
    return Interval(
        every=every,
        anchor=None if anchor is None else parse_instant(anchor, field="schedule.anchor"),
        since=created_at,
    )


def _parse_at(value: dict[str, Any], key: str, created_at: Instant) -> Trigger:
    at = parse_instant(value["at"], field="schedule.at")
    if at < created_at - GRACE:
        remedy = "Give a later instant, or leave the schedule out and trigger the job."
        raise BadInput(f"{format_instant(at)} has passed and would never fire.", remedy, field="schedule.at")
    return Once(at=at)


class Kind(Struct, frozen=True, kw_only=True):
    """One kind of trigger: what it is called unless named, its own fields, how they are read, and its default rule.

    `check_params` refuses templates in its params that could not be filled when it fires.
    """

    name: str
    fields: tuple[str, ...]
    read: Callable[[dict[str, Any], str, Instant], Trigger]
    overlap: Overlap = "skip"
    check_params: Callable[[dict[str, Any], str], None] = check_fire_params
    rules: tuple[str, ...] | None = None  # those that mean something here, unless all do


def _external(name: str, fields: tuple[str, ...], read: Callable[[dict[str, Any], str, Instant], Trigger]) -> Kind:
    """A kind that something outside fires: each event is work of its own, and none has an instant to be missed."""
    return Kind(
        name=name,
        fields=fields,
        read=read,
        overlap="allow",
        rules=EVENT_RULES,
        check_params=check_params,
    )


KINDS: dict[str, Kind] = {
    "cron": Kind(name="cron", fields=("cron", "timezone", "dialect", "dstGap", "dstOverlap"), read=_parse_cron),
    "every": Kind(name="interval", fields=("every", "anchor"), read=_parse_every),
    "at": Kind(name="once", fields=("at",), read=_parse_at),
    "event": _external("event", EVENT_FIELDS, read_event_trigger),
    "webhook": _external("webhook", EVENT_FIELDS, read_event_trigger),
    "watch": _external("watch", WATCH_FIELDS, read_watch_trigger),
}


def _refuse_unknown(value: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in (str(name)[:40] for name in value if name not in known):
        near = get_close_matches(name, known, n=1)
        remedy = f'Did you mean "{near[0]}"?' if near else f"It takes {', '.join(known)}."
        raise BadInput(f"This schedule has no field {name!r}.", remedy, field=f"schedule.{name}")


def _text(value: dict[str, Any], name: str, default: str) -> str:
    given = value.get(name, default)
    if not isinstance(given, str):
        raise BadInput(f"schedule.{name} is a text.", _ACCEPTED, field=f"schedule.{name}")
    return given


def _one_of(value: dict[str, Any], name: str, default: str, choices: Any) -> Any:
    given = _text(value, name, default)
    if given not in get_args(choices):
        known = ", ".join(get_args(choices))
        raise BadInput(
            f"schedule.{name} cannot be {given[:40]!r}.", f"It is one of: {known}.", field=f"schedule.{name}"
        )
    return given
