"""Due: timers whose time has come, locked, and read with what their executions need."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.store.moves.live import live_among
from horae.store.moves.promote import LONG_AGO
from horae.store.moves.targets import COLUMNS, JOINED, Target, read_target
from horae.store.moves.triggers import COUNT, TIMER, Timer, read_timer, why
from horae.store.script import Fetch, Row, Rows, Script, Statement

# Locked before anything is joined: what other batches hold is passed over at the price of a look at its row.
DUE = Statement(
    "due_timers",
    f"SELECT {TIMER.replace('t.', 'due.')}, {COLUMNS} FROM (SELECT t.trigger_id, t.job, t.next_fire_at,"
    " t.decided_through, t.last_execution, t.fired, t.moved_to FROM timers t"
    " WHERE (t.next_fire_at, t.trigger_id) >= ($1, $2) AND t.next_fire_at <= $3"
    " ORDER BY t.next_fire_at, t.trigger_id LIMIT $4 FOR UPDATE OF t SKIP LOCKED) due"
    f" JOIN triggers g ON g.id = due.trigger_id JOIN jobs j ON j.id = due.job {JOINED}",
)
NEXT_FIRE = Statement("next_fire", "SELECT min(next_fire_at) FROM timers WHERE next_fire_at >= $1")
TROUBLED = Statement("troubled_timers", "SELECT count(*) FROM timers WHERE trouble IS NOT NULL")
NEXT = 6  # where a due timer's own instant is, of the columns of TIMER
TARGET = COUNT  # where a due timer's columns of its target begin

Mark = tuple[Instant, UUID]  # a timer's place in the order in which they are due
FIRST: Mark = (LONG_AGO, UUID(int=0))


class Trouble(Struct, frozen=True):
    """A trigger that could not be decided, and why."""

    trigger: UUID
    job: UUID
    reason: str


class Due(Struct, frozen=True, gc=False):
    """A due timer with what its executions need."""

    timer: Timer
    target: Target


def look(low: Mark, now: Instant, limit: int) -> Script[Rows]:
    """Lock timers that are due, from a mark on; those that others hold are passed over."""
    return (yield Fetch(DUE, (*low, now, limit)))


def last_of(rows: Rows) -> Mark:
    """The mark of the last of the timers."""
    return max((row[NEXT], row[0]) for row in rows)


def read(rows: Sequence[Row], troubles: list[Trouble]) -> list[Due]:
    """The timers that can be read; jobs are read once each."""
    targets: dict[UUID, Target] = {}
    found: list[Due] = []
    for row in rows:
        try:
            job = row[TARGET]
            target = targets.get(job)
            if target is None:
                target = targets[job] = read_target(row, TARGET)
            found.append(Due(read_timer(row), target))
        except Exception as error:
            troubles.append(Trouble(row[0], row[TARGET], why(error)))
    return found


def still_live(due: Sequence[Due]) -> Script[set[UUID]]:
    """Which of the timers' last executions have not ended."""
    last = {d.timer.last_execution for d in due if d.timer.last_execution and d.timer.rules.overlap != "allow"}
    return (yield from live_among(last)) if last else set()


def troubled() -> Script[int]:
    """How many triggers cannot be decided."""
    rows = yield Fetch(TROUBLED)
    return int(rows[0][0])


def next_fire_at(low: Mark) -> Script[Instant | None]:
    """When the earliest timer from a mark on is due."""
    rows = yield Fetch(NEXT_FIRE, (low[0],))
    value: Instant | None = rows[0][0]
    return value
