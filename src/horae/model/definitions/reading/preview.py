"""The future fires of a schedule. They are computed without I/O, so that a command can show them without a server."""

from collections.abc import Callable
from typing import Any

from horae.env import Instant
from horae.errors import BadInput
from horae.model.base.instant import format_instant
from horae.model.definitions.reading.schedule import parse_when, render_when
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.decisions.named_trigger import SCHEDULE, NamedTrigger
from horae.model.triggers.decisions.preview import preview, warnings, zone_of
from horae.model.triggers.decisions.rules import Rules, describe_outside
from horae.model.triggers.decisions.schedule import KINDS, either, kind_of
from horae.model.triggers.decisions.values import Timed
from horae.model.triggers.fire_view import PreviewView, UpcomingFireView


def show_preview(
    given: dict[str, Any],
    after: Instant,
    count: int,
    namespace: str = "default",
    by: Callable[[Rules], Calendar] | None = None,
) -> PreviewView:
    """Return the first fires of a trigger, in API form, strictly after an instant.

    `H` in a cron expression stands for a value computed from a hash of the namespace. `by` returns the calendar that
    the rules of a trigger name.
    """
    spelled = {field: value for field, value in given.items() if field != "name" and value is not None}
    when = parse_when(spelled, key=f"{namespace}/preview", created_at=after, name=str(given.get("name") or SCHEDULE))
    return show_coming(when, after, count, by)


def show_coming(
    when: NamedTrigger, after: Instant, count: int, by: Callable[[Rules], Calendar] | None = None
) -> PreviewView:
    """Return the first fires of a parsed trigger after an instant; an interval is counted from its own anchor."""
    if not isinstance(when.trigger, Timed):
        remedy = f"Give {either([kind.field for kind in KINDS.values() if kind.is_timed])}."
        kind = kind_of(render_when(when)).name
        raise BadInput(f"Triggers of kind {kind} have no instants to show.", remedy, field="schedule")
    calendar = by(when.rules) if by is not None and when.rules.calendars else None
    coming = preview(when.trigger, when.rules, after, count, calendar=calendar)
    return PreviewView(
        fires=[format_instant(one.at) for one in coming],
        text=when.trigger.words + describe_outside(when.rules),
        timezone=zone_of(when.trigger),
        details=[UpcomingFireView(at=format_instant(one.at), local=one.local, note=one.note) for one in coming],
        notes=[*warnings(when.trigger), *([] if coming else ["The trigger has no more fires."])],
    )
