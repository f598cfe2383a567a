"""The calendars that triggers go by: checked when a job is written, and asked when one is shown."""

from collections.abc import Sequence

from horae.engine.trigger_checks import field_of
from horae.env import Instant
from horae.errors import BadInput
from horae.model.calendar import Calendar, Times, all_open, no_such_calendar, present
from horae.model.trigger import Timed, When, begin
from horae.model.trigger.by_calendar import runs_after
from horae.model.trigger.rules import Rules
from horae.store.contract import Store
from horae.store.moves import calendars as moves


async def check_calendars(store: Store, namespace: int, whens: Sequence[When], now: Instant) -> None:
    """Refuse triggers that go by a calendar which is not there, or that it never lets fire."""
    going = [when for when in whens if when.rules.calendars]
    if not going:
        return
    known = await store.read(lambda: moves.definitions(namespace))
    for when in going:
        _check(when, known, now)


def _check(when: When, known: dict[str, Times], now: Instant) -> None:
    field = f"{field_of(when)}.{'calendar' if len(when.rules.calendars) == 1 else 'calendars'}"
    for name in when.rules.calendars:
        if name not in known:
            error = no_such_calendar(name, known)
            raise BadInput(error.detail, error.remedy, field=field)
    calendar = calendar_of(when.rules, known)
    coming = runs_after(when.trigger, when.rules, calendar, begin(when.trigger, now))
    if isinstance(when.trigger, Timed) and next(coming, None) is None:
        remedy = 'Choose other instants or another calendar, or let "outside" postpone or advance them.'
        raise BadInput(f'It never fires while "{calendar.name}" is open.', remedy, field=field)


def calendar_of(rules: Rules, known: dict[str, Times]) -> Calendar:
    """What must be open, as calendars are now."""
    return all_open([present(name, known) for name in rules.calendars])
