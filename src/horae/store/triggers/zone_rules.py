"""Time zone rules: the store remembers by which version of the time zone database its timers were computed.

In a newer version, the clock of a zone may change on other days. Then the next fire of each timer is computed again,
from the last decided fire on.
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
# SKIP LOCKED leaves out timers that a transaction is firing at this moment, because it computes their next fire anyway.
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
    """The result of one call of `retime`."""

    changed: int  # timers whose next fire has changed
    next: UUID | None  # the `after` of the next call; None after the last page


def stored_version() -> Script[str | None]:
    """Return the version of the rules by which all timers were computed last."""
    rows = yield Fetch(KNOWN)
    return rows[0][0] if rows else None


def remember(version: str, now: Instant) -> Script[None]:
    """Record that all timers were computed by these rules, and add the earlier version to the log."""
    before = yield from stored_version()
    if before == version:
        return
    yield Fetch(REMEMBER, ("zone_rules", version))
    if before is not None:
        log = [*(yield from earlier_versions()), (before, now)][-MOST_LOGGED:]
        yield Fetch(REMEMBER, ("zone_rules_log", msgspec.json.encode(log).decode()))


def earlier_versions() -> Script[list[tuple[str, Instant]]]:
    """Return earlier versions of the rules, each with the end of its use."""
    rows = yield Fetch(LOG)
    return msgspec.json.decode(rows[0][0], type=list[tuple[str, Instant]]) if rows else []


def retime(after: UUID, limit: int, now: Instant) -> Script[RetimedPage]:
    """Compute the next fires of a page of timers again, by the time zone rules that are installed on this server."""
    rows = yield Fetch(PAGE, (after, limit))
    found = [(timer, _next(timer, now)) for timer in map(_zoned, rows) if timer is not None]
    changes = [(timer.id, at) for timer, at in found if at != timer.next_fire_at]
    columns: Columns = (("trigger_id", "uuid"), ("next_fire_at", "bigint"))
    yield ForEach(SET, columns, changes)
    return RetimedPage(len(changes), rows[-1][0] if len(rows) == limit else None)


def _zoned(row: Row) -> Timer | None:
    """Return the timer if it follows the clock of a time zone and has a next fire, otherwise None.

    Return None for an unreadable timer, too: the transaction that fires it reports the error.
    """
    try:
        timer = read_timer(row)
    except Exception:
        return None
    is_zoned = timer.trigger.wall is not None and timer.trigger.wall.timezone != "UTC"
    return timer if is_zoned and timer.next_fire_at is not None else None


def _next(timer: Timer, now: Instant) -> Instant | None:
    """Return the due time by the installed rules.

    A timer with calendars becomes due now, so that the transaction that fires it computes the next time: this needs the
    calendars, which are not read here.
    """
    assert timer.next_fire_at is not None
    if timer.next_fire_at <= now:
        return timer.next_fire_at
    if timer.rules.calendars:
        return now
    try:
        return due_after(timer.trigger, timer.rules, timer.decided_through)
    except Exception:
        return timer.next_fire_at
