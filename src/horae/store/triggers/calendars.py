"""Calendars: named, in versions that are each valid for a time. A deleted one keeps its versions and frees its name.

A change holds the namespace's lock on calendars, as does whoever makes a trigger that goes by one: so what a trigger or
another calendar refers to is there. What was compiled once is kept as long as its rows are the same.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.errors import HoraeError
from horae.model.triggers.calendars.compiled import Calendar, all_open
from horae.model.triggers.calendars.read import parse_times
from horae.model.triggers.calendars.resolve import Version, through_time
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
MAX_LEVELS = 10  # of references, more than a calendar may have


class StoredCalendar(Struct, frozen=True, kw_only=True):
    """One version of a calendar as it is kept; `definition` is in the API's spelling."""

    name: str
    version: int
    definition: str
    description: str
    valid_from: Instant
    valid_to: Instant | None
    created_at: Instant

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
    """A calendar as it is, or as it was at an instant."""
    rows = yield Fetch(PRESENT, (namespace, name)) if at is None else Fetch(AT, (namespace, name, at))
    return _stored(rows[0]) if rows else None


def page(namespace: int, after: str, limit: int) -> Script[list[StoredCalendar]]:
    """Calendars in the order of their names."""
    rows = yield Fetch(PAGE, (namespace, after, limit))
    return [_stored(row) for row in rows]


def versions(namespace: int, name: str) -> Script[list[StoredCalendar]]:
    """All versions of a name, newest first, also those of a calendar that was deleted."""
    rows = yield Fetch(VERSIONS, (namespace, name))
    return [_stored(row) for row in rows]


def definitions(namespace: int) -> Script[dict[str, Times]]:
    """Every calendar of a namespace as it is."""
    rows = yield Fetch(ALL, (namespace,))
    return {name: _times(definition) for name, definition in rows}


def put(namespace: int, name: str, definition: str, description: str, now: Instant) -> Script[int]:
    """Write the next version, valid from now on; its number. The caller holds the lock."""
    rows = yield Fetch(LAST, (namespace, name))
    version = rows[0][0] + 1 if rows else 1
    # A version is valid for some time, even if the clock was set back.
    begin = max(now, *(instant + 1 for instant in rows[0][1:] if instant is not None)) if rows else now
    yield Fetch(END, (namespace, name, begin))
    yield Fetch(ADD, (namespace, name, version, definition, description, begin))
    return int(version)


def delete(namespace: int, name: str, now: Instant) -> Script[None]:
    """The present version ends; the caller holds the lock."""
    rows = yield Fetch(LAST, (namespace, name))
    yield Fetch(END, (namespace, name, max(now, rows[0][1] + 1)))


def triggers_of(namespace: int, name: str, limit: int) -> Script[list[tuple[str, str]]]:
    """Which triggers go by a calendar: job and trigger, by name."""
    rows = yield Fetch(TRIGGERS, (namespace, name, limit))
    return [(job, trigger) for job, trigger in rows]


def wake(namespace: int, names: Collection[str], now: Instant) -> Script[int]:
    """Let the timers whose fires these calendars advance be looked at now: whoever fires next decides them anew.

    All others are looked at when their fires come. Nothing else of a timer changes, so nothing is decided twice; a
    paused trigger sleeps on, as does one without fires left, which has nothing to decide.
    """
    rows = yield ForEach(TIMERS, NAMES, [(namespace, name) for name in sorted(names)], (now,))
    ids = sorted({row[0] for row in rows})
    if ids:
        yield ForEach(WAKE, (("trigger_id", "uuid"),), [(id,) for id in ids], (now,))
    return len(ids)


def use(namespace: int, names: Iterable[str], trigger: UUID, outside: str) -> Script[list[str]]:
    """Note that a trigger goes by these calendars; those that are not there are told. The caller holds the lock."""
    wanted = sorted(set(names))
    rows = yield ForEach(SINCE, NAMES, [(namespace, name) for name in wanted], (FOREVER,))
    missing = sorted({*wanted} - {row[1] for row in rows})
    if not missing:
        columns: Columns = (("namespace", "int"), ("calendar", "text"), ("trigger_id", "uuid"), ("outside", "text"))
        yield Insert("calendar_triggers", columns, [(namespace, name, trigger, outside) for name in wanted])
    return missing


FOREVER: Instant = 1 << 62  # only present versions are valid then


def drop_uses(trigger: UUID) -> Script[None]:
    """A trigger that has ended goes by no calendar."""
    yield Fetch(DROP_USES, (trigger,))


CalendarNames = tuple[int, tuple[str, ...]]  # a namespace and the names of calendars that must all be open


def compiled(wanted: Collection[CalendarNames], since: Instant) -> Script[dict[CalendarNames, Calendar]]:
    """Calendars that judge each instant after `since` by the versions valid then. One that is not there is left out."""
    rows = yield from _closure({(namespace, name) for namespace, names in wanted for name in names}, since)
    found: dict[CalendarNames, Calendar] = {}
    for namespace, names in wanted:
        own = _reached(names, [row for row in rows if row[0] == namespace])
        if {*names} <= {row[1] for row in own}:
            with suppress(HoraeError):  # a reference that leads nowhere keeps no other trigger from firing
                found[namespace, names] = _compiled(names, own)
    return found


def _reached(names: tuple[str, ...], rows: Sequence[Row]) -> tuple[Row, ...]:
    """Those of the rows that these calendars need, so that equal calendars are equal keys of what is kept."""
    reached: set[str] = set()
    wanted = {*names}
    while not wanted <= reached:
        reached |= wanted
        wanted = {name for row in rows if row[1] in wanted for name in references_of(_times(row[3]))}
    return tuple(row for row in rows if row[1] in reached)


def _closure(wanted: set[tuple[int, str]], since: Instant) -> Script[list[Row]]:
    """The rows of these calendars and of all they refer to, a statement a level."""
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
    return all_open([through_time(name, kept) for name in names])
