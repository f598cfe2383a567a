"""Due: timers whose time has come, locked, and read with what their executions need."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.store.base.live import live_among
from horae.store.executions.promote import LONG_AGO
from horae.store.script import Among, Fetch, Rows, Script, Statement
from horae.store.triggers.targets import OF_JOBS, Target, read_target, with_choices
from horae.store.triggers.triggers import Timer, describe_error, read_timer

# Nothing is joined: whatever a planner believes of other tables, this is one walk along the index, done once.
DUE = Statement(
    "due_timers",
    "SELECT t.trigger_id, t.job, t.next_fire_at, t.decided_through, t.last_execution, t.fired, t.moved_to FROM timers t"
    " WHERE (t.next_fire_at, t.trigger_id) >= ($1, $2) AND t.next_fire_at <= $3"
    " ORDER BY t.next_fire_at, t.trigger_id LIMIT $4 FOR UPDATE OF t SKIP LOCKED",
)
DEFINITIONS = Statement(
    "due_definitions",
    "SELECT g.id, g.name, g.definition, g.rules, g.params, g.state FROM triggers g WHERE g.id = ANY($1)",
)
NEXT_FIRE = Statement("next_fire", "SELECT min(next_fire_at) FROM timers WHERE next_fire_at >= $1")
TROUBLED = Statement("troubled_timers", "SELECT count(*) FROM timers WHERE trouble IS NOT NULL")
WAITED = Statement(
    "waited_timers",
    "SELECT t.trigger_id, t.trouble FROM timers t WHERE t.trigger_id = ANY($1) AND t.trouble IS NOT NULL",
)
NEXT = 2  # where a due timer's own instant is

Mark = tuple[Instant, UUID]  # a timer's place in the order in which they are due
FIRST: Mark = (LONG_AGO, UUID(int=0))


class Trouble(Struct, frozen=True):
    """A trigger that could not be decided, and why."""

    trigger: UUID
    job: UUID
    reason: str
    costly: bool = False  # an expression of the job takes too much work, and will again


class DueTimer(Struct, frozen=True, gc=False):
    """A due timer with what its executions need."""

    timer: Timer
    target: Target


def lock_due(low: Mark, now: Instant, limit: int) -> Script[Rows]:
    """Lock timers that are due, from a mark on; those that others hold are passed over."""
    return (yield Fetch(DUE, (*low, now, limit)))


def last_of(rows: Rows) -> Mark:
    """The mark of the last of the timers."""
    last = max(rows, key=lambda row: (row[NEXT], row[0].int))
    return last[NEXT], last[0]


def read_due(rows: Rows, troubles: list[Trouble]) -> Script[list[DueTimer]]:
    """The timers with what defines them and the jobs that they fire, each of these read once.

    Whoever changes what defines a timer waits for it.
    """
    definitions = {row[0]: row for row in (yield Among(DEFINITIONS, [row[0] for row in rows]))}
    jobs = yield Among(OF_JOBS, list(dict.fromkeys(row[1] for row in rows)))
    known: dict[UUID, Target] = {}
    found: list[DueTimer] = []
    for row in jobs:
        try:
            known[row[0]] = read_target(row)
        except Exception as error:
            troubles += (Trouble(timer[0], row[0], describe_error(error)) for timer in rows if timer[1] == row[0])
    known = yield from with_choices(known)
    for row in rows:
        definition, target = definitions.get(row[0]), known.get(row[1])
        if definition is None or target is None:
            continue
        try:
            found.append(DueTimer(read_timer(definition + row[2:]), target))
        except Exception as error:
            troubles.append(Trouble(row[0], row[1], describe_error(error)))
    return found


def still_live(due: Sequence[DueTimer]) -> Script[set[UUID]]:
    """Which of the timers' last executions have not ended."""
    last = {d.timer.last_execution for d in due if d.timer.last_execution and d.timer.rules.overlap != "allow"}
    return (yield from live_among(last)) if last else set()


def earlier_troubles(ids: Sequence[UUID]) -> Script[dict[UUID, str]]:
    """Which of these locked timers could not be decided before, and why."""
    return dict((yield Among(WAITED, ids))) if ids else {}


def count_troubled() -> Script[int]:
    """How many triggers cannot be decided."""
    rows = yield Fetch(TROUBLED)
    return int(rows[0][0])


def next_fire_at(low: Mark) -> Script[Instant | None]:
    """When the earliest timer from a mark on is due."""
    rows = yield Fetch(NEXT_FIRE, (low[0],))
    value: Instant | None = rows[0][0]
    return value
