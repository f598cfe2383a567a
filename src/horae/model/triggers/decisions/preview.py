"""Previews of a trigger's fires for users: instants, local times and clock changes."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.model.base.duration import format_duration
from horae.model.base.instant import format_instant
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.cron.lint import lint
from horae.model.triggers.cron.zone import BUCKET_BITS, load, spans
from horae.model.triggers.decisions.by_calendar import runs_after
from horae.model.triggers.decisions.decide import upcoming
from horae.model.triggers.decisions.lost_times import lost_times_between
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger

MOST = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class UpcomingFire(Struct, frozen=True, kw_only=True):
    """One future fire: its instant, the local time, and a note about a move by a calendar or about clock changes."""

    at: Instant
    local: str
    note: str = ""


def preview(
    trigger: Trigger,
    rules: Rules,
    after: Instant,
    count: int,
    zone: str | None = None,
    calendar: Calendar | None = None,
) -> list[UpcomingFire]:
    """Return the first fires strictly after an instant that the bounds and a calendar allow, at most `count`.

    Local times are in the trigger's own zone unless another zone is given. A fire moved by the calendar is shown at its
    new instant.
    """
    name = zone or zone_of(trigger)
    found: list[UpcomingFire] = []
    last = after
    most = count if rules.max_fires is None else min(count, rules.max_fires)
    for nominal, at in islice(_coming(trigger, rules, after, calendar), most):
        moved = "" if nominal == at else f"moved from {format_instant(nominal)}"
        note = "; ".join(
            part for part in (moved, _note(name, last, at), _skipped(trigger, rules, last, nominal)) if part
        )
        found.append(UpcomingFire(at=at, local=local_time(name, at), note=note))
        last = at
    return found


def zone_of(trigger: Trigger) -> str:
    """Return the zone of a trigger's wall times; UTC for triggers without a zone."""
    return "UTC" if trigger.wall is None else trigger.wall.timezone


def warnings(trigger: Trigger) -> list[str]:
    """Warn about valid definitions that probably do not mean what their author intended."""
    return [] if trigger.wall is None else lint(trigger.wall.parsed)


def _coming(
    trigger: Trigger, rules: Rules, after: Instant, calendar: Calendar | None
) -> Iterator[tuple[Instant, Instant]]:
    """Yield future fires, each as its nominal instant and the instant at which it runs."""
    if calendar is not None:
        yield from runs_after(trigger, rules, calendar, after)
        return
    at = upcoming(trigger, rules, after)
    while at is not None:
        yield at, at
        at = upcoming(trigger, rules, at)


def local_time(zone: str, at: Instant) -> str:
    """Format the local time in a zone, with the day of the week and the offset."""
    wall = (_EPOCH + timedelta(microseconds=at)).astimezone(load(zone))
    return wall.strftime("%a %Y-%m-%d %H:%M:%S %z")


def changes(zone: str, after: Instant, until: Instant) -> list[str]:
    """Describe the clock changes of a zone in (after, until]."""
    first, last = after // SECOND, until // SECOND
    found = []
    before: int | None = None
    for bucket in range(first >> BUCKET_BITS, (last >> BUCKET_BITS) + 1):
        for span in spans(zone, bucket):
            if before is not None and span.offset != before and first < span.start <= last:
                found.append(_change(span.start, before, span.offset))
            before = span.offset
    return found


def _note(zone: str, after: Instant, at: Instant) -> str:
    found = changes(zone, after, at)
    if len(found) > 1:
        return f"{len(found)} clock changes before this, the last: {found[-1]}"
    return found[0] if found else ""


def _skipped(trigger: Trigger, rules: Rules, after: Instant, nominal: Instant) -> str:
    """Describe the wall times that clock changes skipped between two fires."""
    lost = lost_times_between(trigger, rules, after, nominal)
    return f"{lost[-1].walls} did not exist and was skipped" if lost else ""


def _change(start: int, before: int, offset: int) -> str:
    way = "forward" if offset > before else "back"
    walls = [(_EPOCH + timedelta(seconds=start + each)).strftime("%H:%M") for each in (before, offset)]
    amount = format_duration(abs(offset - before) * SECOND)
    return f"clocks go {way} by {amount} at {format_instant(start * SECOND)}, from {walls[0]} to {walls[1]}"
