"""Scripts that open, change and end holds.

A maintenance window is a hold that follows a calendar: after an opening, it moves to the next one.

A transaction that opens a hold locks the table against claims, see `hold_query`. So after its commit, no server starts
an execution in the queues that it covers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import SECOND, Instant, Micros
from horae.errors import Conflict, HoraeError
from horae.model.admission.hold import NEVER, Hold, next_opening
from horae.model.base.duration import DAY
from horae.model.triggers.calendars.compiled import Calendar
from horae.store.base.shelves import Columns, names
from horae.store.script import Fetch, ForEach, Insert, Lock, Row, Script, Statement
from horae.store.triggers import calendars

HOLD: Columns = (
    ("id", "uuid"), ("namespace", "int"), ("queue", "int"), ("calendar", "text"), ("from_at", "bigint"),
    ("until_at", "bigint"), ("drain", "bool"), ("reason", "text"), ("created_at", "bigint"), ("created_by", "text"),
    ("ended_at", "bigint"), ("ended_by", "text"),
)  # fmt: skip
OPEN = Statement("open_holds", f"SELECT {names(HOLD)} FROM holds WHERE ended_at IS NULL ORDER BY id")
OF_NAMESPACE = Statement(
    "holds_of_namespace",
    f"SELECT {names(HOLD)} FROM holds WHERE namespace = $1 AND (ended_at IS NULL OR ended_at >= $2) ORDER BY id DESC",
)
COUNT = Statement("count_holds", "SELECT count(*) FROM holds WHERE namespace = $1 AND ended_at IS NULL")
SAME = Statement(
    "same_hold",
    f"SELECT {names(HOLD)} FROM holds WHERE namespace = $1 AND coalesce(queue, 0) = $2 AND coalesce(calendar, '') = $3"
    " AND (calendar IS NOT NULL OR (reason = $4 AND (until_at IS NULL) = (CAST($5 AS bigint) = 0)))"
    " AND ended_at IS NULL",
)
CHANGE = Statement("change_hold", "UPDATE holds SET from_at = $2, until_at = $3, drain = $4, reason = $5 WHERE id = $1")
RELEASE = Statement(
    "release_holds",
    "UPDATE holds SET ended_at = $4, ended_by = $5 WHERE namespace = $1 AND coalesce(queue, 0) = $2"
    " AND calendar IS NULL AND until_at IS NOT NULL AND (CAST($3 AS text) IS NULL OR reason = $3)"
    f" AND ended_at IS NULL RETURNING {names(HOLD)}",
)
RESUME = Statement(
    "resume_queue",
    "UPDATE holds SET ended_at = $3, ended_by = $4 WHERE namespace = $1 AND coalesce(queue, 0) = $2"
    f" AND calendar IS NULL AND until_at IS NULL AND ended_at IS NULL RETURNING {names(HOLD)}",
)
REMOVE = Statement(
    "remove_window",
    "UPDATE holds SET ended_at = $4, ended_by = $5 WHERE namespace = $1 AND coalesce(queue, 0) = $2 AND calendar = $3"
    f" AND ended_at IS NULL RETURNING {names(HOLD)}",
)
DUE = Statement(
    "due_holds",
    f"SELECT {names(HOLD)} FROM holds WHERE ended_at IS NULL AND until_at <= $1 ORDER BY id FOR UPDATE SKIP LOCKED",
)
END = Statement("end_holds", "UPDATE holds SET ended_at = given.at FROM given WHERE holds.id = given.id")
MOVE = Statement(
    "move_windows",
    "UPDATE holds SET from_at = given.from_at, until_at = given.until_at FROM given WHERE holds.id = given.id",
)
WINDOWS = Statement(
    "windows_by_calendar",
    f"SELECT {names(HOLD, 'h.')}, q.name FROM holds h LEFT JOIN queues q ON q.id = h.queue"
    " WHERE h.namespace = $1 AND h.calendar IS NOT NULL AND h.ended_at IS NULL ORDER BY h.id",
)
FORGET = Statement("forget_holds", "DELETE FROM holds WHERE ended_at < $1")
RUNNING = Statement("running_by_queue", "SELECT queue, sum(hi - lo) FROM running WHERE namespace = $1 GROUP BY queue")
MAX_HOLDS = 100  # holds of a namespace that have not ended; few, because every claim reads them
KEPT: Micros = 30 * DAY  # how long ended holds stay stored
AGAIN: Micros = 60 * SECOND  # pause before the next opening is computed again for a window with an unusable calendar


class AdvancedHolds(Struct, frozen=True):
    """The result of `advance`."""

    ended: list[Hold]  # holds that have ended, and windows that moved to their next opening
    troubled: list[Hold]  # windows for which the calendar has no next opening or cannot be used

    def __bool__(self) -> bool:
        return bool(self.ended or self.troubled)


def read_hold(row: Row) -> Hold:
    return Hold(
        id=row[0], namespace=row[1], queue=row[2], calendar=row[3], from_at=row[4], until_at=row[5], drain=bool(row[6]),
        reason=row[7], created_at=row[8], created_by=row[9], ended_at=row[10], ended_by=row[11],
    )  # fmt: skip


def _row(h: Hold) -> tuple[object, ...]:
    return (
        h.id, h.namespace, h.queue, h.calendar, h.from_at, h.until_at, h.drain, h.reason, h.created_at, h.created_by,
        h.ended_at, h.ended_by,
    )  # fmt: skip


def all_open() -> Script[list[Hold]]:
    """Return all holds that have not ended, of all namespaces."""
    return [read_hold(row) for row in (yield Fetch(OPEN))]


def of_namespace(namespace: int, ended_after: Instant) -> Script[list[Hold]]:
    """Return holds of a namespace that have not ended, or ended at `ended_after` or later, newest first."""
    return [read_hold(row) for row in (yield Fetch(OF_NAMESPACE, (namespace, ended_after)))]


def running_by_queue(namespace: int) -> Script[dict[int, int]]:
    """Count the running executions of a namespace by queue."""
    return {queue: int(count) for queue, count in (yield Fetch(RUNNING, (namespace,)))}


def open_hold(hold: Hold) -> Script[Hold]:
    """Open a hold that begins at its `from_at`. This waits for claims under way, and later claims see the hold.

    If the queue (or the namespace) already has a hold with the same reason, or a window of the same calendar, that one
    is changed instead. Raises Conflict when the namespace has MAX_HOLDS.
    """
    yield Lock(table="holds")  # guard: hold-locks-claims
    yield Fetch(FORGET, (hold.created_at - KEPT,))
    same = (hold.namespace, hold.queue or 0, hold.calendar or "", hold.reason, hold.until_at or 0)
    rows = yield Fetch(SAME, same)
    if rows:
        before = read_hold(rows[0])
        yield Fetch(CHANGE, (before.id, hold.from_at, hold.until_at, hold.drain, hold.reason))
        return structs.replace(
            before, from_at=hold.from_at, until_at=hold.until_at, drain=hold.drain, reason=hold.reason
        )
    counted = yield Fetch(COUNT, (hold.namespace,))
    if counted[0][0] >= MAX_HOLDS:
        raise Conflict(
            f"There are {MAX_HOLDS} holds, and no more are allowed.", "Release some; GET /api/v1/holds lists them."
        )
    yield Insert("holds", HOLD, [_row(hold)])
    return hold


def release(namespace: int, queue: int | None, reason: str | None, by: str, now: Instant) -> Script[list[Hold]]:
    """End the holds of a queue, or with `queue` None of the whole namespace, except pauses and windows.

    With `reason`, only holds with that reason end.
    """
    rows = yield Fetch(RELEASE, (namespace, queue or 0, reason, now, by))
    return [read_hold(row) for row in rows]


def resume(namespace: int, queue: int | None, by: str, now: Instant) -> Script[list[Hold]]:
    """End the pauses (holds without a planned end) of a queue or of the whole namespace; other holds stay."""
    rows = yield Fetch(RESUME, (namespace, queue or 0, now, by))
    return [read_hold(row) for row in rows]


def remove_window(namespace: int, queue: int | None, calendar: str, by: str, now: Instant) -> Script[list[Hold]]:
    """End the maintenance window of a queue, or of the whole namespace, that follows a calendar."""
    rows = yield Fetch(REMOVE, (namespace, queue or 0, calendar, now, by))
    return [read_hold(row) for row in rows]


def advance(now: Instant) -> Script[AdvancedHolds]:
    """End holds whose time is over, and move windows whose opening is over to the next one.

    Rows are locked with SKIP LOCKED, so that only one of several servers handles each hold.
    """
    due = [read_hold(row) for row in (yield Fetch(DUE, (now,)))]
    over = [hold for hold in due if hold.calendar is None]
    if over:
        columns: Columns = (("id", "uuid"), ("at", "bigint"))
        yield ForEach(END, columns, [(hold.id, hold.until_at) for hold in over])
    windows = [hold for hold in due if hold.calendar is not None]
    if not windows:
        return AdvancedHolds(over, [])
    wanted = sorted({_wanted(hold) for hold in windows})
    times = yield from calendars.compiled(wanted, now)
    troubled = yield from _move(windows, {hold.id: times.get(_wanted(hold)) for hold in windows}, now)
    return AdvancedHolds([*over, *(hold for hold in windows if hold not in troubled)], troubled)


def _wanted(hold: Hold) -> calendars.CalendarNames:
    return hold.namespace, (hold.calendar or "",)


def _move(windows: Sequence[Hold], times: Mapping[UUID, Calendar | None], now: Instant) -> Script[list[Hold]]:
    """Write the next openings of windows; return the windows that have none or whose calendar cannot be used.

    These hold nothing back, and are tried again after a minute.
    """
    rows: list[tuple[UUID, Instant, Instant | None]] = []
    troubled: list[Hold] = []
    for hold in windows:
        opening = _opening(times[hold.id], now)
        if opening is None:
            troubled.append(hold)
        begin, end = opening or (NEVER, now + AGAIN)
        rows.append((hold.id, begin, end))
    columns: Columns = (("id", "uuid"), ("from_at", "bigint"), ("until_at", "bigint"))
    yield ForEach(MOVE, columns, rows)
    return troubled


def _opening(calendar: Calendar | None, now: Instant) -> tuple[Instant, Instant | None] | None:
    try:
        return None if calendar is None else next_opening(calendar, now)
    except HoraeError:
        return None


def windows_of(namespace: int, names: Collection[str]) -> Script[list[tuple[Hold, str]]]:
    """Return the windows that follow these calendars, each with the name of its queue (`*` for all queues)."""
    rows = yield Fetch(WINDOWS, (namespace,))
    found = [(read_hold(row), row[len(HOLD)] or "*") for row in rows]
    return [(hold, queue) for hold, queue in found if hold.calendar in names]


def follow(namespace: int, times: Mapping[str, Calendar], now: Instant) -> Script[None]:
    """Move the windows of changed calendars to their new openings; claims after the commit see these.

    `times` has the changed calendars by name.
    """
    if not (yield from windows_of(namespace, times.keys())):
        return
    yield Lock(table="holds")  # guard: calendar-hold-locks-claims
    windows = yield from windows_of(namespace, times.keys())
    yield from _move([hold for hold, _ in windows], _by_hold(windows, times), now)


def _by_hold(windows: Iterable[tuple[Hold, str]], times: Mapping[str, Calendar]) -> dict[UUID, Calendar | None]:
    return {hold.id: times[hold.calendar or ""] for hold, _ in windows}
