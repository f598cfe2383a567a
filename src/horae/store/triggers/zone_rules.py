"""Zone rules: the store remembers by which version of the zones' rules its timers were computed.

With newer rules a zone's clock may change on other days: what is still to come is computed anew from what was decided.
"""

from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.triggers.decisions.decide import due_after
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Row, Script, Statement
from horae.store.triggers.triggers import TIMER, Timer, read_timer

FIRST = UUID(int=0)
KNOWN = Statement("zone_rules", "SELECT value FROM store WHERE key = 'zone_rules'")
REMEMBER = Statement(
    "remember_zone_rules",
    "INSERT INTO store (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
)
LOG = Statement("zone_rules_log", "SELECT value FROM store WHERE key = 'zone_rules_log'")
MOST_LOGGED = 20
# What somebody fires right now is computed by whoever fires it.
PAGE = Statement(
    "timers_to_retime",
    f"SELECT {TIMER} FROM timers t JOIN triggers g ON g.id = t.trigger_id WHERE t.trigger_id > $1"
    " ORDER BY t.trigger_id LIMIT $2 FOR UPDATE OF t SKIP LOCKED",
)
SET = Statement(
    "retime",
    "UPDATE timers SET next_fire_at = given.next_fire_at FROM given WHERE timers.trigger_id = given.trigger_id",
)


class RetimedPage(Struct, frozen=True):
    """How many timers a step changed, and where to go on; None at the end."""

    changed: int
    next: UUID | None


def stored_version() -> Script[str | None]:
    """The version of the rules by which all timers were computed last."""
    rows = yield Fetch(KNOWN)
    return rows[0][0] if rows else None


def remember(version: str, now: Instant) -> Script[None]:
    """All timers were computed by these rules; what was decided before went by those that are put into the log."""
    before = yield from stored_version()
    if before == version:
        return
    yield Fetch(REMEMBER, ("zone_rules", version))
    if before is not None:
        log = [*(yield from earlier_versions()), (before, now)][-MOST_LOGGED:]
        yield Fetch(REMEMBER, ("zone_rules_log", msgspec.json.encode(log).decode()))


def earlier_versions() -> Script[list[tuple[str, Instant]]]:
    """The versions of the rules that were in force before the present ones, each with until when."""
    rows = yield Fetch(LOG)
    return msgspec.json.decode(rows[0][0], type=list[tuple[str, Instant]]) if rows else []


def retime(after: UUID, limit: int, now: Instant) -> Script[RetimedPage]:
    """Compute the next fires of a page of timers anew by the rules that are installed here."""
    rows = yield Fetch(PAGE, (after, limit))
    found = [(timer, _next(timer, now)) for timer in map(_zoned, rows) if timer is not None]
    changes = [(timer.id, at) for timer, at in found if at != timer.next_fire_at]
    columns: Columns = (("trigger_id", "uuid"), ("next_fire_at", "bigint"))
    yield ForEach(SET, columns, changes)
    return RetimedPage(len(changes), rows[-1][0] if len(rows) == limit else None)


def _zoned(row: Row) -> Timer | None:
    """A timer that goes by a zone's clock and is to come; one that cannot be read is left to who decides it."""
    try:
        timer = read_timer(row)
    except Exception:
        return None
    is_zoned = timer.trigger.wall is not None and timer.trigger.wall.timezone != "UTC"
    return timer if is_zoned and timer.next_fire_at is not None else None


def _next(timer: Timer, now: Instant) -> Instant | None:
    """When it is due by these rules; one that goes by calendars is met now, and decides what comes next."""
    assert timer.next_fire_at is not None
    if timer.next_fire_at <= now:
        return timer.next_fire_at
    if timer.rules.calendars:
        return now
    try:
        return due_after(timer.trigger, timer.rules, timer.decided_through)
    except Exception:
        return timer.next_fire_at
