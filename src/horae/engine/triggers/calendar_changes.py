"""Changes of calendars as scripts. Each runs in one transaction, and raises to roll it back."""

from typing import Literal

import msgspec

from horae.env import Instant
from horae.errors import BadInput, Conflict, Stale
from horae.model.triggers.calendars.compiled import Calendar
from horae.model.triggers.calendars.read import render_times
from horae.model.triggers.calendars.resolve import current_calendar, users_of
from horae.model.triggers.calendars.values import Times, references_of
from horae.model.triggers.calendars.view import CalendarUse
from horae.store.admission import holds
from horae.store.base import locks
from horae.store.script import Script
from horae.store.triggers import calendars as moves
from horae.store.triggers.calendars import StoredCalendar

MOST = 1_000  # calendars of a namespace
MOST_USES = 50  # triggers in an error

Change = Literal["created", "changed", "unchanged"]


def put(
    namespace: int,
    name: str,
    times: Times,
    description: str,
    if_match: int | None,
    *,
    new: bool,
    now: Instant,
) -> Script[Change]:
    yield from locks.take(locks.of_calendars(namespace))  # guard: calendar-locks
    before = yield from moves.find(namespace, name)
    if before is not None and new:
        remedy = f"Choose another name, or change the existing calendar: PUT /api/v1/calendars/{name}."
        raise Conflict(f'A calendar named "{name}" exists.', remedy, field="name")
    _match(name, before, if_match)
    definition = msgspec.json.encode(render_times(times)).decode()
    if before is not None and (before.definition, before.description) == (definition, description):
        return "unchanged"
    known = yield from moves.definitions(namespace)
    if len(known) >= MOST and before is None:
        raise Conflict(f"There are {len(known)} calendars, and no more are allowed.", "Delete some.")
    known[name] = times
    users = users_of([name], known)
    times_of = {user: resolved(user, known) for user in sorted(users)}
    yield from moves.put(namespace, name, definition, description, now)
    yield from moves.wake(namespace, users, now)
    yield from holds.follow(namespace, times_of, now)
    return "created" if before is None else "changed"


def delete(namespace: int, name: str, if_match: int | None, now: Instant) -> Script[bool]:
    yield from locks.take(locks.of_calendars(namespace))
    before = yield from moves.find(namespace, name)
    if before is None:
        return False
    _match(name, before, if_match)
    uses = yield from uses_of(namespace, name)
    if uses:
        users = ", ".join(map(_in_words, uses[:5])) + (f" and {len(uses) - 5} more" if len(uses) > 5 else "")
        remedy = "Change them first, so that they use another calendar or none."
        raise Conflict(f'Calendar "{name}" is used by {users}.', remedy, usedBy=msgspec.to_builtins(uses))
    yield from moves.delete(namespace, name, now)
    return True


def _match(name: str, before: StoredCalendar | None, if_match: int | None) -> None:
    if if_match is None:
        return
    version = None if before is None else before.version
    if version != if_match:
        state = "does not exist" if before is None else f"is at version {version}, not {if_match}"
        remedy = "Read it again and repeat the change if it still makes sense."
        raise Stale(f'Calendar "{name}" {state}.', remedy, version=version)


def uses_of(namespace: int, name: str) -> Script[list[CalendarUse]]:
    """Return the calendars, triggers and windows that refer to a calendar."""
    known = yield from moves.definitions(namespace)
    calendars = [CalendarUse(calendar=user) for user, times in known.items() if name in references_of(times)]
    triggers = yield from moves.triggers_of(namespace, name, MOST_USES)
    windows = yield from holds.windows_of(namespace, [name])
    return [
        *calendars,
        *(CalendarUse(job=job, trigger=trigger) for job, trigger in triggers),
        *(CalendarUse(queue=queue) for _, queue in windows),
    ]


def _in_words(use: CalendarUse) -> str:
    if use.queue:
        return "the window of all queues" if use.queue == "*" else f'the window of queue "{use.queue}"'
    return f'calendar "{use.calendar}"' if use.calendar else f'trigger "{use.trigger}" of job "{use.job}"'


def resolved(name: str, definitions: dict[str, Times]) -> Calendar:
    """Return a calendar with the calendars that it refers to. An error names the field `definition`."""
    try:
        return current_calendar(name, definitions)
    except BadInput as error:
        raise BadInput(error.detail, error.remedy, **{"field": "definition", **error.fields}) from None
