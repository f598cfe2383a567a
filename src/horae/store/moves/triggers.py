"""Triggers: added, paused, resumed and ended; `fire` decides them.

The timer's row is the guard against a double fire: whoever changes or decides a trigger locks it.
"""

from collections.abc import Iterable
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.errors import HoraeError
from horae.model.trigger import Disposition, LedgerRun, Rules, Trigger, begin, cover, is_spent, upcoming
from horae.store.moves.shelves import Columns
from horae.store.script import Fetch, Insert, Row, Script, Statement

ADD = Statement(
    "add_trigger",
    "INSERT INTO triggers (id, job, namespace, version, definition, rules, state, valid_from, created_at)"
    " VALUES ($1, $2, $3, $4, $5, $6, 'active', $7, $7)",
)
ADD_TIMER = Statement(
    "add_timer",
    "INSERT INTO timers (trigger_id, job, namespace, next_fire_at, decided_through) VALUES ($1, $2, $3, $4, $5)",
)
OF_JOB = Statement(
    "triggers_of_job",
    "SELECT g.id, g.definition, g.rules, t.next_fire_at, t.decided_through, t.last_execution, t.fired"
    " FROM timers t JOIN triggers g ON g.id = t.trigger_id WHERE g.job = $1 ORDER BY g.id FOR UPDATE OF t",
)
READ_OF_JOB = Statement(
    "read_triggers_of_job",
    "SELECT g.id, g.definition, g.rules, t.next_fire_at, t.decided_through, t.last_execution, t.fired"
    " FROM timers t JOIN triggers g ON g.id = t.trigger_id WHERE g.job = $1 ORDER BY g.id",
)
END = Statement("end_trigger", "UPDATE triggers SET state = 'ended', valid_to = $2 WHERE id = $1")
DROP_TIMER = Statement("drop_timer", "DELETE FROM timers WHERE trigger_id = $1")
SET_TIMER = Statement("set_timer", "UPDATE timers SET next_fire_at = $2, decided_through = $3 WHERE trigger_id = $1")
FIRES: Columns = (
    ("trigger_id", "uuid"), ("first", "bigint"), ("last", "bigint"), ("disposition", "text"), ("cause", "text"),
    ("execution", "uuid"), ("decided_at", "bigint"),
)  # fmt: skip
MOST_TOLD = 500  # characters of why a trigger could not be decided


class Timer(Struct, frozen=True, kw_only=True):
    """A job's trigger with its hot columns."""

    id: UUID
    trigger: Trigger
    rules: Rules
    next_fire_at: Instant | None
    decided_through: Instant
    last_execution: UUID | None = None
    fired: int = 0  # fires that ran, for `max_fires`


def add(
    id: UUID, job: UUID, namespace: int, version: int, trigger: Trigger, rules: Rules, now: Instant, *, paused: bool
) -> Script[None]:
    """A trigger begins now; a paused job's has no next fire."""
    decided = begin(trigger, now)
    following = None if paused else upcoming(trigger, rules, decided)
    yield Fetch(ADD, (id, job, namespace, version, _json(trigger), _json(rules), now))
    yield Fetch(ADD_TIMER, (id, job, namespace, following, decided))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def of_job(job: UUID, *, lock: bool = False) -> Script[list[Timer]]:
    """A job's triggers; locked ones cannot fire meanwhile."""
    rows = yield Fetch(OF_JOB if lock else READ_OF_JOB, (job,))
    return [read_timer(row) for row in rows]


def read_timer(row: Row) -> Timer:
    """A timer from the columns that its statements begin with."""
    return Timer(
        id=row[0], trigger=msgspec.json.decode(row[1], type=Trigger), rules=msgspec.json.decode(row[2], type=Rules),
        next_fire_at=row[3], decided_through=row[4], last_execution=row[5], fired=row[6],
    )  # fmt: skip


def end(
    timer: Timer,
    now: Instant,
    disposition: Disposition = "skipped-misfire",
    cause: str = "the trigger ended before this was decided",
) -> Script[None]:
    """A trigger ends at max(now, what it decided); it fires no more. What it left undecided gets a ledger row.

    One that had no fires left ended with the last of them.
    """
    run = _left_out(timer, now, disposition, cause)
    if run is not None:
        yield from put_fires([(timer.id, run, None)], now)
    ended_at = timer.decided_through if is_spent(timer.rules, timer.fired) else max(now, timer.decided_through)
    yield Fetch(END, (timer.id, ended_at))
    yield Fetch(DROP_TIMER, (timer.id,))


def _left_out(timer: Timer, now: Instant, disposition: Disposition, cause: str) -> LedgerRun | None:
    """One run for what is undecided; a trigger that cannot be decided can be ended all the same."""
    if is_spent(timer.rules, timer.fired):
        return None
    try:
        return cover(timer.trigger, timer.rules, timer.decided_through, now, disposition, cause)
    except Exception as error:
        if timer.decided_through >= now:
            return None
        told = f"{cause}; which instants these were cannot be told: {why(error)}"
        return LedgerRun(timer.decided_through + 1, now, disposition, told)


def why(error: Exception) -> str:
    """Why a trigger could not be decided."""
    told = error.detail if isinstance(error, HoraeError) else f"{type(error).__name__}: {error}"
    return told[:MOST_TOLD]


def pause(timer: Timer) -> Script[None]:
    """No fires until resumed."""
    yield Fetch(SET_TIMER, (timer.id, None, timer.decided_through))


def resume(timer: Timer, now: Instant) -> Script[None]:
    """One ledger row covers what the pause left out."""
    if is_spent(timer.rules, timer.fired):
        return
    run = _left_out(timer, now, "skipped-paused", "the job was paused")
    if run is not None:
        yield from put_fires([(timer.id, run, None)], now)
    decided = max(now, timer.decided_through)
    yield Fetch(SET_TIMER, (timer.id, _next_of(timer, decided), decided))


def _next_of(timer: Timer, decided: Instant) -> Instant | None:
    """When a timer is due after what was decided; one that cannot be decided is met, and set aside, at once."""
    try:
        return upcoming(timer.trigger, timer.rules, decided)
    except Exception:
        return decided


def put_fires(fires: Iterable[tuple[UUID, LedgerRun, UUID | None]], now: Instant) -> Script[None]:
    """Ledger rows; their key is the second guard against a double fire."""
    rows = [(id, run.first, run.last, run.disposition, run.cause, execution, now) for id, run, execution in fires]
    if rows:
        yield Insert("fires", FIRES, rows)
