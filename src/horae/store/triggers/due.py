"""Scripts that lock due timers and read their definitions and their jobs."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.store.base.live import live_among
from horae.store.executions.promote import LONG_AGO
from horae.store.script import Among, Fetch, Rows, Script, Statement
from horae.store.triggers.targets import OF_JOBS, Target, read_target, with_choices
from horae.store.triggers.triggers import Timer, describe_error, read_timer

# Without a join, so that PostgreSQL's planner always chooses a single index scan, whatever statistics it has.
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
NEXT = 2  # the index of the column next_fire_at

Mark = tuple[Instant, UUID]  # a timer's position in the order of due times
FIRST: Mark = (LONG_AGO, UUID(int=0))


class Trouble(Struct, frozen=True):
    """A trigger whose fires could not be decided, and the reason."""

    trigger: UUID
    job: UUID
    reason: str
    costly: bool = False  # whether the reason is that an expression of the job takes too much work; a retry cannot help


class DueTimer(Struct, frozen=True, gc=False):
    """A due timer and the job that it fires."""

    timer: Timer
    target: Target


def lock_due(low: Mark, now: Instant, limit: int) -> Script[Rows]:
    """Lock due timers from the position `low` on; skip those that other transactions have locked."""
    return (yield Fetch(DUE, (*low, now, limit)))


def last_of(rows: Rows) -> Mark:
    """Return the position of the last of the timers in the order of due times."""
    last = max(rows, key=lambda row: (row[NEXT], row[0].int))
    return last[NEXT], last[0]


def read_due(rows: Rows, troubles: list[Trouble]) -> Script[list[DueTimer]]:
    """Read the definitions of locked timers, and their jobs.

    The definitions cannot change meanwhile, because a transaction that changes one must lock its timer. What cannot be
    read is added to `troubles`.
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
    """Return those last executions of timers that have not ended, except if the trigger's overlap is `allow`."""
    last = {d.timer.last_execution for d in due if d.timer.last_execution and d.timer.rules.overlap != "allow"}
    return (yield from live_among(last)) if last else set()


def earlier_troubles(triggers: Sequence[UUID]) -> Script[dict[UUID, str]]:
    """Return the recorded reasons why timers could not be decided or waited for room; others are left out."""
    return dict((yield Among(WAITED, triggers))) if triggers else {}


def count_troubled() -> Script[int]:
    """Count the triggers that cannot be decided or that wait for room in a quota."""
    rows = yield Fetch(TROUBLED)
    return int(rows[0][0])


def next_fire_at(low: Mark) -> Script[Instant | None]:
    """Return the due time of the earliest timer from the position `low` on; None if there is none."""
    rows = yield Fetch(NEXT_FIRE, (low[0],))
    value: Instant | None = rows[0][0]
    return value
