"""Calendars: write, read and delete them, and list their openings. A change takes effect at once on all servers."""

from typing import Any

import msgspec

from horae.engine.base.refs import in_quotes, nearest
from horae.engine.definitions.announcer import Announcer, FireDue
from horae.engine.triggers import calendar_changes as changes
from horae.engine.triggers.calendar_changes import Change
from horae.env import Env, Instant, Micros
from horae.errors import BadInput, HoraeError, NotFound
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.duration import DAY
from horae.model.base.instant import END_OF_RANGE, format_instant, parse_instant
from horae.model.base.view import Page, shown_time
from horae.model.fields.values import NAME, a_name, an_object
from horae.model.triggers.calendars.compiled import FIRST, LAST, Calendar
from horae.model.triggers.calendars.read import read_calendar
from horae.model.triggers.calendars.resolve import check_opens, check_times, current_calendar
from horae.model.triggers.calendars.values import Times
from horae.model.triggers.calendars.view import CalendarUse, CalendarView, OpeningView, describe_times
from horae.store.contract import Store
from horae.store.triggers import calendars as moves
from horae.store.triggers.calendars import StoredCalendar

OVER = "It has been open for the last time: a trigger that uses it does not fire again, unless days are added."
AHEAD: Micros = 366 * DAY  # the default span of openings


class Calendars:
    """Operations on calendars."""

    def __init__(self, env: Env, store: Store, announcer: Announcer, fire_due: FireDue) -> None:
        self._env, self._store, self._announcer, self._fire_due = env, store, announcer, fire_due

    async def create(self, namespace: int, body: Any) -> CalendarView:
        """Create a calendar from the decoded body of POST /api/v1/calendars. Raises BadInput, Conflict."""
        given = an_object(body, "body", 'Send {"name": "work", "hours": "MON-FRI 09:00-17:00"}.')
        if "name" not in given:
            raise BadInput("A calendar needs a name.", 'Add "name": "work-days".', field="name")
        view, _ = await self.put(namespace, given["name"], body, new=True)
        return view

    async def put(
        self, namespace: int, name: str, body: Any, *, if_match: int | None = None, new: bool = False
    ) -> tuple[CalendarView, Change]:
        """Write the calendar of this name as the body defines it. An equal definition makes no new version.

        Raises BadInput, Stale when `if_match` is not the present version, and Conflict when `new` is set and the name
        is taken.
        """
        name = a_name(name, "name", NAME)
        times, description = read_calendar(name, body)
        check_times(times)
        known = await self._store.read(lambda: moves.definitions(namespace))
        check_opens(name, changes.resolved(name, {**known, name: times}), self._env.now())
        if name in known:
            await self._fire_due()
        change = await self._store.change(
            lambda now: changes.put(namespace, name, times, description, if_match, new=new, now=now)
        )
        if change != "unchanged":
            self._announcer.calendar_changed()
        return await self.get(namespace, name), change

    async def delete(self, namespace: int, name: str, *, if_match: int | None = None) -> None:
        """Delete a calendar that nothing refers to; its versions stay. Raises NotFound, Stale, Conflict."""
        if not await self._store.change(lambda now: changes.delete(namespace, name, if_match, now)):
            raise await self._missing(namespace, name)

    async def get(self, namespace: int, name: str, at: str | None = None) -> CalendarView:
        """Return a calendar as it is now, or as it was at an instant. Raises NotFound with the nearest names."""
        stored = await self._stored(namespace, name, at)
        uses = await self._store.read(lambda: changes.uses_of(namespace, name))
        return self._view(stored, await self._calendar(namespace, stored), uses)

    async def versions(self, namespace: int, name: str) -> "list_of[CalendarView]":
        """Return all versions of a name, newest first, also if the calendar was deleted."""
        stored = await self._store.read(lambda: moves.versions(namespace, name))
        if not stored:
            raise await self._missing(namespace, name)
        return [self._view(each, await self._calendar(namespace, each)) for each in stored]

    async def list(self, namespace: int, *, limit: int = 50, cursor: str | None = None) -> Page[CalendarView]:
        """Return a page of calendars, sorted by name."""
        after = "" if cursor is None else read_cursor(cursor, str)
        size = check_limit(limit) + 1
        rows = await self._store.read(lambda: moves.page(namespace, after, size))
        wanted = [(namespace, (each.name,)) for each in rows[:limit]]
        known = await self._store.read(lambda: moves.compiled(wanted, moves.FOREVER))
        items = [self._view(each, known.get((namespace, (each.name,)), _unresolved())) for each in rows[:limit]]
        return Page(items=items, next_cursor=make_cursor(items[-1].name) if len(rows) > limit else None)

    async def openings(
        self,
        namespace: int,
        name: str,
        *,
        after: str | None = None,
        before: str | None = None,
        at: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[OpeningView]:
        """Return the openings of a calendar between two instants; by default in the coming year."""
        start = self._env.now() if after is None else parse_instant(after, field="from")
        end = min(start + AHEAD, END_OF_RANGE) if before is None else parse_instant(before, field="to")
        if end <= start:
            raise BadInput("`to` is not after `from`.", "Give a later `to`.", field="to")
        start = start if cursor is None else read_cursor(cursor, int)
        stored = await self._stored(namespace, name, at)
        calendar = await self._calendar(namespace, stored)
        if isinstance(calendar, HoraeError):
            raise calendar
        items: list_of[OpeningView] = []
        for opening in calendar.openings(start, end):
            if len(items) == check_limit(limit):
                return Page(items=items, next_cursor=make_cursor(opening.start))
            items.append(OpeningView(from_=_edge(opening.start), to=_edge(opening.end)))
        return Page(items=items)

    async def _stored(self, namespace: int, name: str, at: str | None) -> StoredCalendar:
        instant = None if at is None else parse_instant(at, field="at")
        stored = await self._store.read(lambda: moves.find(namespace, name, instant))
        if stored is None:
            raise await self._missing(namespace, name, at)
        return stored

    async def _calendar(self, namespace: int, stored: StoredCalendar) -> Calendar | HoraeError:
        """Return a version with the present calendars that it refers to, or the error if one of them cannot be read."""
        known = await self._store.read(lambda: moves.definitions(namespace))
        return _tried(stored.name, {**known, stored.name: stored.times})

    def _view(
        self, stored: StoredCalendar, calendar: "Calendar | HoraeError", uses: "list_of[CalendarUse] | None" = None
    ) -> CalendarView:
        now = self._env.now()
        is_open, edge, notes = _state(calendar, now)
        return CalendarView(
            name=stored.name,
            version=stored.version,
            description=stored.description,
            definition=msgspec.json.decode(stored.definition),
            text=describe_times(stored.times),
            open=is_open,
            opens_at=None if is_open else shown_time(edge),
            closes_at=shown_time(edge) if is_open else None,
            created_at=format_instant(stored.created_at),
            valid_from=format_instant(stored.valid_from),
            valid_to=shown_time(stored.valid_to),
            used_by=uses or [],
            notes=notes,
        )

    async def _missing(self, namespace: int, name: str, at: str | None = None) -> NotFound:
        shown = name[:128]
        known = await self._store.read(lambda: moves.versions(namespace, name))
        if known and at is not None:
            remedy = f"List its versions with GET /api/v1/calendars/{shown}/versions."
            return NotFound(f'There was no calendar "{shown}" at {at}.', remedy, calendar=shown)
        if known:
            return NotFound(f'Calendar "{shown}" was deleted.', "Its versions can still be read.", calendar=shown)
        near = nearest(name, sorted(await self._store.read(lambda: moves.definitions(namespace))))
        remedy = f"Did you mean {in_quotes(near)}?" if near else "List them with `horae calendars list`."
        return NotFound(f'There is no calendar named "{shown}".', remedy, calendar=shown)


list_of = list  # inside the class, `list` is its method


def _unresolved() -> BadInput:
    """Return a new error each time, because a raised error keeps its traceback."""
    remedy = "Request that calendar by its name to see the problem."
    return BadInput("This calendar refers to a calendar that cannot be read.", remedy)


def _tried(name: str, definitions: dict[str, Times]) -> Calendar | HoraeError:
    try:
        return current_calendar(name, definitions)
    except HoraeError as error:
        return error


def _state(calendar: Calendar | HoraeError, now: Instant) -> tuple[bool | None, Instant | None, list[str]]:
    """Return whether a calendar is open, when that changes, and notes.

    An error, such as missing holidays, is a note.
    """
    try:
        if isinstance(calendar, HoraeError):
            raise calendar
        is_open = calendar.is_open(now)
        edge = calendar.next_closed(now) if is_open else calendar.next_open(now)
        return is_open, edge, [OVER] if not is_open and edge is None else []
    except HoraeError as error:
        return None, None, [str(error)]


def _edge(at: Instant) -> str | None:
    return None if at in (FIRST, LAST) else format_instant(at)
