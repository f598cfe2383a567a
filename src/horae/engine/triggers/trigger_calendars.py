"""The calendars of triggers: checked when a job is written, applied when its next fire is shown."""

from collections.abc import Sequence
from uuid import UUID

from horae.engine.triggers.trigger_checks import field_of
from horae.env import Instant
from horae.errors import BadInput, HoraeError
from horae.model.definitions.job import Spec
from horae.model.triggers.calendars.compiled import Calendar, open_when_all
from horae.model.triggers.calendars.resolve import current_calendar, no_such_calendar
from horae.model.triggers.calendars.values import Times
from horae.model.triggers.decisions.by_calendar import runs_after
from horae.model.triggers.decisions.decide import upcoming
from horae.model.triggers.decisions.lost_times import first_lost_time
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.schedule import FIELDS
from horae.model.triggers.decisions.timetable import FAR, Timetable
from horae.model.triggers.decisions.values import Timed, begin
from horae.store.contract import Store
from horae.store.triggers import calendars as moves
from horae.store.triggers.triggers import Timer

_BETWEEN = set(FIELDS.where(lambda field: field.between))


async def check_calendars(store: Store, namespace: int, whens: Sequence[NamedTrigger], now: Instant) -> None:
    """Refuse triggers with a missing calendar, or with one that never lets them fire."""
    by_calendar = [when for when in whens if when.rules.calendars]
    if not by_calendar:
        return
    known = await store.read(lambda: moves.definitions(namespace))
    for when in by_calendar:
        _check(when, known, now)


def _check(when: NamedTrigger, known: dict[str, Times], now: Instant) -> None:
    field = f"{field_of(when)}.{'calendar' if len(when.rules.calendars) == 1 else 'calendars'}"
    for name in when.rules.calendars:
        if name not in known:
            error = no_such_calendar(name, known)
            raise BadInput(error.detail, error.remedy, field=field)
    calendar = calendar_of(when.rules, known)
    if not isinstance(when.trigger, Timed):
        _check_opens(calendar, field, now)
        return
    coming = runs_after(when.trigger, when.rules, calendar, begin(when.trigger, now))
    if next(coming, None) is None:
        remedy = 'Choose other instants or another calendar, or let "outside" postpone or advance them.'
        raise BadInput(f'The trigger never fires while "{calendar.name}" is open.', remedy, field=field)


def _check_opens(calendar: Calendar, field: str, now: Instant) -> None:
    if not calendar.is_open(now) and calendar.next_open(now) is None:
        remedy = "Choose another calendar, or add future days to this one."
        raise BadInput(
            f'"{calendar.name}" is never open again, so no event would fire the trigger.', remedy, field=field
        )


def calendar_of(rules: Rules, known: dict[str, Times]) -> Calendar:
    """Return the combination of the calendars in a trigger's rules, as they are now."""
    return open_when_all([current_calendar(name, known) for name in rules.calendars])


def may_be_due_without_run(spec: Spec) -> bool:
    """Return whether a job has timers that are also due for fires that do not run, such as those a calendar skips."""
    definitions = (spec.schedule, *spec.triggers)
    return any(isinstance(definition, dict) and not _BETWEEN.isdisjoint(definition) for definition in definitions)


async def next_runs(store: Store, namespace: int, timers: Sequence[Timer]) -> dict[UUID, Instant | None]:
    """Return the next run of each timer, by calendars as they are now.

    It may be later than the stored due time, because a timer with calendars is also due for fires that do not run, and
    a cron timer for fires that a clock change skips. If the next run cannot be computed, return the stored due time.
    """
    found = {timer.id: _fires_next(timer) for timer in timers}
    by_calendar = [timer for timer in timers if timer.rules.calendars and timer.next_fire_at is not None]
    if by_calendar:
        wanted = sorted({(namespace, timer.rules.calendars) for timer in by_calendar})
        known = await store.read(lambda: moves.compiled(wanted, moves.FOREVER))
        found |= {timer.id: _next_run(timer, known.get((namespace, timer.rules.calendars))) for timer in by_calendar}
    return found


def _fires_next(timer: Timer) -> Instant | None:
    """Return when a timer is due.

    If it is due only to record a fire that a clock change skips, return the fire after that.
    """
    at, offset = timer.next_fire_at, timer.rules.offset
    try:
        if at is None or first_lost_time(timer.trigger, timer.rules, at - offset - 1, at - offset + 1) is None:
            return at
        following = upcoming(timer.trigger, timer.rules, at - offset)
    except HoraeError:
        return at
    return None if following is None else following + offset


def timetable_of(timer: Timer, calendar: Calendar, horizon: Instant = FAR) -> Timetable:
    """Return the fires of a timer that run, by calendars as they are now; fires after the horizon are not checked."""
    return Timetable(timer.trigger, timer.rules, calendar, timer.decided_through, timer.moved_to, horizon)


def _next_run(timer: Timer, calendar: Calendar | None) -> Instant | None:
    if calendar is None:
        return timer.next_fire_at
    try:
        timetable = timetable_of(timer, calendar)
        at = timetable.next(timer.decided_through)
        due = None if at is None else timetable.due(at)
    except HoraeError:
        return timer.next_fire_at
    return None if due is None else due + timer.rules.offset
