"""Calendars: each has a name and versions, and each version is valid from one instant to another.

The versions of a deleted calendar stay stored, and a new calendar may have its name. A transaction that changes a
calendar, or creates a trigger that uses one, holds the namespace's lock on calendars. Therefore every calendar to which
a trigger or another calendar refers exists. Compiled calendars are cached by the content of their rows.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.errors import HoraeError
from horae.model.triggers.calendars.compiled import Calendar, open_when_all
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.calendars.resolve import Version, calendar_through_time
from horae.model.triggers.calendars.values import Times, references_of
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement

COLUMNS = "name, version, definition, description, valid_from, valid_to"
CREATED = (
    "(SELECT min(x.valid_from) FROM calendars x WHERE x.namespace = c.namespace AND x.name = c.name) AS created_at"
)
PRESENT = Statement(
    "calendar",
    f"SELECT {COLUMNS}, {CREATED} FROM calendars c WHERE namespace = $1 AND name = $2 AND valid_to IS NULL",
)
AT = Statement(
    "calendar_at",
    f"SELECT {COLUMNS}, {CREATED} FROM calendars c WHERE namespace = $1 AND name = $2 AND valid_from <= $3"
    " AND (valid_to IS NULL OR valid_to > $3)",
)
PAGE = Statement(
    "calendar_page",
    f"SELECT {COLUMNS}, {CREATED} FROM calendars c WHERE namespace = $1 AND name > $2 AND valid_to IS NULL"
    " ORDER BY name LIMIT $3",
)
VERSIONS = Statement(
    "calendar_versions",
    f"SELECT {COLUMNS}, {CREATED} FROM calendars c WHERE namespace = $1 AND name = $2 ORDER BY version DESC",
)
ALL = Statement(
    "all_calendars", "SELECT name, definition FROM calendars WHERE namespace = $1 AND valid_to IS NULL ORDER BY name"
)
SINCE = Statement(
    "calendars_since",
    "SELECT c.namespace, c.name, c.version, c.definition, c.valid_from, c.valid_to FROM given JOIN calendars c"
    " ON c.namespace = given.namespace AND c.name = given.name WHERE c.valid_to IS NULL OR c.valid_to > $3",
)
LAST = Statement(
    "last_calendar_version",
    "SELECT version, valid_from, valid_to FROM calendars WHERE namespace = $1 AND name = $2"
    " ORDER BY version DESC LIMIT 1",
)
END = Statement(
    "end_calendar", "UPDATE calendars SET valid_to = $3 WHERE namespace = $1 AND name = $2 AND valid_to IS NULL"
)
ADD = Statement(
    "add_calendar",
    "INSERT INTO calendars (namespace, name, version, definition, description, valid_from)"
    " VALUES ($1, $2, $3, $4, $5, $6)",
)
TRIGGERS = Statement(
    "triggers_by_calendar",
    "SELECT j.name, g.name FROM calendar_triggers u JOIN triggers g ON g.id = u.trigger_id JOIN jobs j ON j.id = g.job"
    " WHERE u.namespace = $1 AND u.calendar = $2 ORDER BY j.name, g.name LIMIT $3",
)
TIMERS = Statement(
    "timers_by_calendar",
    "SELECT t.trigger_id FROM given JOIN calendar_triggers u ON u.namespace = given.namespace"
    " AND u.calendar = given.name JOIN timers t ON t.trigger_id = u.trigger_id JOIN triggers g ON g.id = t.trigger_id"
    " JOIN jobs j ON j.id = g.job WHERE u.outside = 'advance' AND g.state = 'active' AND j.state = 'active'"
    " AND (t.next_fire_at IS NULL OR t.next_fire_at > $3) ORDER BY t.trigger_id FOR UPDATE OF t",
)
WAKE = Statement(
    "wake_timers",
    "UPDATE timers SET next_fire_at = $2 FROM given WHERE timers.trigger_id = given.trigger_id",
)
DROP_USES = Statement("drop_calendar_uses", "DELETE FROM calendar_triggers WHERE trigger_id = $1")
NAMES: Columns = (("namespace", "int"), ("name", "text"))
MAX_LEVELS = 10  # levels of references between calendars; more than the checks of calendars allow


class StoredCalendar(Struct, frozen=True, kw_only=True):
    """One stored version of a calendar."""

    name: str
    version: int
    definition: str  # JSON as in the API
    description: str
    valid_from: Instant
    valid_to: Instant | None  # None for the current version
    created_at: Instant  # when the first version was created

    @property
    def times(self) -> Times:
        return _times(self.definition)


@lru_cache(maxsize=1024)
def _times(definition: str) -> Times:
    return parse_times(msgspec.json.decode(definition))


def _stored(row: Row) -> StoredCalendar:
    return StoredCalendar(
        name=row[0], version=row[1], definition=row[2], description=row[3], valid_from=row[4], valid_to=row[5],
        created_at=row[6],
    )  # fmt: skip


def find(namespace: int, name: str, at: Instant | None = None) -> Script[StoredCalendar | None]:
    """Return the current version of a calendar, or with `at` the version that was valid at that instant."""
    rows = yield Fetch(PRESENT, (namespace, name)) if at is None else Fetch(AT, (namespace, name, at))
    return _stored(rows[0]) if rows else None


def page(namespace: int, after: str, limit: int) -> Script[list[StoredCalendar]]:
    """Return a page of calendars in the order of their names."""
    rows = yield Fetch(PAGE, (namespace, after, limit))
    return [_stored(row) for row in rows]


def versions(namespace: int, name: str) -> Script[list[StoredCalendar]]:
    """Return all versions of calendars with a name, newest first, also those of deleted calendars."""
    rows = yield Fetch(VERSIONS, (namespace, name))
    return [_stored(row) for row in rows]


def definitions(namespace: int) -> Script[dict[str, Times]]:
    """Return the current version of every calendar of a namespace, by name."""
    rows = yield Fetch(ALL, (namespace,))
    return {name: _times(definition) for name, definition in rows}


def put(namespace: int, name: str, definition: str, description: str, now: Instant) -> Script[int]:
    """Write the next version, valid from now on, and return its number. The caller holds the lock on calendars."""
    rows = yield Fetch(LAST, (namespace, name))
    version = rows[0][0] + 1 if rows else 1
    # Each version is valid for at least a microsecond, even if the clock was set back.
    begin = max(now, *(instant + 1 for instant in rows[0][1:] if instant is not None)) if rows else now
    yield Fetch(END, (namespace, name, begin))
    yield Fetch(ADD, (namespace, name, version, definition, description, begin))
    return int(version)


def delete(namespace: int, name: str, now: Instant) -> Script[None]:
    """End the current version. The caller holds the lock on calendars."""
    rows = yield Fetch(LAST, (namespace, name))
    yield Fetch(END, (namespace, name, max(now, rows[0][1] + 1)))


def triggers_of(namespace: int, name: str, limit: int) -> Script[list[tuple[str, str]]]:
    """Return the triggers that use a calendar, as (job, trigger) in the order of names."""
    rows = yield Fetch(TRIGGERS, (namespace, name, limit))
    return [(job, trigger) for job, trigger in rows]


def wake(namespace: int, names: Collection[str], now: Instant) -> Script[int]:
    """Make timers due now if a change of these calendars may move their next fire to an earlier time.

    These are the timers with the rule `outside: advance`; all others are decided when their next fire is due. Only the
    due time changes, not `decided_through`, so no fire is decided twice. Timers of paused triggers or jobs do not
    change. Return the number of timers.
    """
    rows = yield ForEach(TIMERS, NAMES, [(namespace, name) for name in sorted(names)], (now,))
    timer_ids = sorted({row[0] for row in rows})
    if timer_ids:
        yield ForEach(WAKE, (("trigger_id", "uuid"),), [(timer_id,) for timer_id in timer_ids], (now,))
    return len(timer_ids)


def use(namespace: int, names: Iterable[str], trigger: UUID, outside: str) -> Script[list[str]]:
    """Record that a trigger uses calendars; if some do not exist, record nothing and return their names.

    The caller holds the lock on calendars.
    """
    wanted = sorted(set(names))
    rows = yield ForEach(SINCE, NAMES, [(namespace, name) for name in wanted], (FOREVER,))
    missing = sorted({*wanted} - {row[1] for row in rows})
    if not missing:
        columns: Columns = (("namespace", "int"), ("calendar", "text"), ("trigger_id", "uuid"), ("outside", "text"))
        yield Insert("calendar_triggers", columns, [(namespace, name, trigger, outside) for name in wanted])
    return missing


FOREVER: Instant = 1 << 62  # an instant at which only present versions are valid


def drop_uses(trigger: UUID) -> Script[None]:
    """Delete the records of the calendars that a trigger uses, because it has ended."""
    yield Fetch(DROP_USES, (trigger,))


CalendarNames = tuple[int, tuple[str, ...]]  # a namespace and the names of calendars that must all be open


def compiled(wanted: Collection[CalendarNames], since: Instant) -> Script[dict[CalendarNames, Calendar]]:
    """Return calendars that judge each instant after `since` by the version that is valid at that instant.

    For each namespace and names in `wanted`, the calendar is open when all calendars with these names are open. It is
    left out if one of them, or one to which they refer, does not exist.
    """
    rows = yield from _closure({(namespace, name) for namespace, names in wanted for name in names}, since)
    found: dict[CalendarNames, Calendar] = {}
    for namespace, names in wanted:
        own = _reached(names, [row for row in rows if row[0] == namespace])
        if {*names} <= {row[1] for row in own}:
            with suppress(HoraeError):  # a broken reference must not stop other triggers from firing
                found[namespace, names] = _compiled(names, own)
    return found


def _reached(names: tuple[str, ...], rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return only the rows of these calendars and of those to which they refer, because the rows are the cache key."""
    reached: set[str] = set()
    wanted = {*names}
    while not wanted <= reached:
        reached |= wanted
        wanted = {name for row in rows if row[1] in wanted for name in references_of(_times(row[3]))}
    return tuple(row for row in rows if row[1] in reached)


def _closure(wanted: set[tuple[int, str]], since: Instant) -> Script[list[Row]]:
    """Return the rows of calendars and of all to which they refer, with one statement for each level of references."""
    known: set[tuple[int, str]] = set()
    found: list[Row] = []
    for _ in range(MAX_LEVELS):
        missing = sorted(wanted - known)
        if not missing:
            break
        rows = yield ForEach(SINCE, NAMES, missing, (since,))
        known |= wanted
        found += map(tuple, rows)
        wanted = {(row[0], name) for row in rows for name in references_of(_times(row[3]))}
    return sorted(found, key=lambda row: row[:3])


@lru_cache(maxsize=1024)
def _compiled(names: tuple[str, ...], rows: tuple[Row, ...]) -> Calendar:
    kept: Sequence[Version] = [
        Version(name=row[1], version=row[2], times=_times(row[3]), valid_from=row[4], valid_to=row[5]) for row in rows
    ]
    return open_when_all([calendar_through_time(name, kept) for name in names])
