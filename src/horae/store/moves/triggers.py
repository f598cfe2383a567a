"""Triggers and fires: the timers' row is the guard against a double fire.

It is locked, and `decided_through` advanced, in the transaction that records the fires and inserts their parcels.
"""

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.execution import Extra
from horae.model.ids import index_of, parcel_of
from horae.model.job import Spec
from horae.model.parcel import AT_LEAST_ONCE, AT_MOST_ONCE, Envelope, Parcel
from horae.model.trigger import (
    Decision,
    Disposition,
    LedgerRun,
    Rules,
    Trigger,
    begin,
    cover,
    decide,
    due_at,
    upcoming,
)
from horae.store.moves.shelves import Columns
from horae.store.moves.submit import NewExecution, place, put_parcels
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement

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
    "SELECT g.id, g.definition, g.rules, t.next_fire_at, t.decided_through, t.last_execution FROM timers t"
    " JOIN triggers g ON g.id = t.trigger_id WHERE g.job = $1 ORDER BY g.id FOR UPDATE OF t",
)
READ_OF_JOB = Statement(
    "read_triggers_of_job",
    "SELECT g.id, g.definition, g.rules, t.next_fire_at, t.decided_through, t.last_execution FROM timers t"
    " JOIN triggers g ON g.id = t.trigger_id WHERE g.job = $1 ORDER BY g.id",
)
END = Statement("end_trigger", "UPDATE triggers SET state = 'ended', valid_to = $2 WHERE id = $1")
DROP_TIMER = Statement("drop_timer", "DELETE FROM timers WHERE trigger_id = $1")
SET_TIMER = Statement("set_timer", "UPDATE timers SET next_fire_at = $2, decided_through = $3 WHERE trigger_id = $1")
DUE = Statement(
    "due_timers",
    "SELECT t.trigger_id, t.job, t.namespace, t.next_fire_at, t.decided_through, t.last_execution, g.definition,"
    " g.rules, j.version, v.spec, v.queue, v.lane, j.name FROM timers t JOIN triggers g ON g.id = t.trigger_id"
    " JOIN jobs j ON j.id = t.job JOIN job_versions v ON v.job = j.id AND v.version = j.version"
    " WHERE t.next_fire_at <= $1 ORDER BY t.next_fire_at LIMIT $2 FOR UPDATE OF t SKIP LOCKED",
)
NEXT_FIRE = Statement("next_fire", "SELECT min(next_fire_at) FROM timers")
LIVE = Statement(
    "live_executions",
    "SELECT given.execution FROM given WHERE EXISTS (SELECT 1 FROM waiting s WHERE s.parcel = given.parcel"
    " AND s.lo <= given.item AND s.hi > given.item) OR EXISTS (SELECT 1 FROM queued s WHERE s.parcel = given.parcel"
    " AND s.lo <= given.item AND s.hi > given.item) OR EXISTS (SELECT 1 FROM running s WHERE s.parcel = given.parcel"
    " AND s.lo <= given.item AND s.hi > given.item)",
)
ADVANCE = Statement(
    "advance_timers",
    "UPDATE timers SET next_fire_at = given.next_fire_at, decided_through = given.decided_through,"
    " last_execution = given.last_execution FROM given WHERE timers.trigger_id = given.trigger_id",
)
FIRES: Columns = (
    ("trigger_id", "uuid"), ("first", "bigint"), ("last", "bigint"), ("disposition", "text"), ("cause", "text"),
    ("execution", "uuid"), ("decided_at", "bigint"),
)  # fmt: skip
MOST_FIRES = 100  # that one trigger may run in one step

Lead = Callable[[int, int], int]  # (queue, priority) -> how far the rank lies before the arrival


class Timer(Struct, frozen=True, kw_only=True):
    """A job's trigger with its hot columns."""

    id: UUID
    trigger: Trigger
    rules: Rules
    next_fire_at: Instant | None
    decided_through: Instant
    last_execution: UUID | None = None


class Fired(Struct, frozen=True):
    """What a firing step did: how many timers it decided, the parcels, and lanes and timers to hint."""

    timers: int
    parcels: list[Parcel]
    lanes: dict[int, int]
    wake_at: Instant | None


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
    return [_timer(row) for row in rows]


def _timer(row: Row) -> Timer:
    return Timer(
        id=row[0], trigger=msgspec.json.decode(row[1], type=Trigger), rules=msgspec.json.decode(row[2], type=Rules),
        next_fire_at=row[3], decided_through=row[4], last_execution=row[5],
    )  # fmt: skip


def end(
    timer: Timer,
    now: Instant,
    disposition: Disposition = "skipped-misfire",
    cause: str = "the trigger ended before this was decided",
) -> Script[None]:
    """A trigger ends at max(now, what it decided); it fires no more. What it left undecided gets a ledger row."""
    run = cover(timer.trigger, timer.rules, timer.decided_through, now, disposition, cause)
    if run is not None:
        yield from put_fires([(timer.id, run, None)], now)
    yield Fetch(END, (timer.id, max(now, timer.decided_through)))
    yield Fetch(DROP_TIMER, (timer.id,))


def pause(timer: Timer) -> Script[None]:
    """No fires until resumed."""
    yield Fetch(SET_TIMER, (timer.id, None, timer.decided_through))


def resume(timer: Timer, now: Instant) -> Script[None]:
    """One ledger row covers what the pause left out."""
    run = cover(timer.trigger, timer.rules, timer.decided_through, now, "skipped-paused", "the job was paused")
    if run is not None:
        yield from put_fires([(timer.id, run, None)], now)
    decided = max(now, timer.decided_through)
    yield Fetch(SET_TIMER, (timer.id, upcoming(timer.trigger, timer.rules, decided), decided))


def put_fires(fires: Iterable[tuple[UUID, LedgerRun, UUID | None]], now: Instant) -> Script[None]:
    """Ledger rows; their key is the second guard against a double fire."""
    rows = [(id, run.first, run.last, run.disposition, run.cause, execution, now) for id, run, execution in fires]
    if rows:
        yield Insert("fires", FIRES, rows)


class _Due(Struct, frozen=True, kw_only=True):
    """A due timer with what its executions need."""

    timer: Timer
    namespace: int
    job: UUID
    name: str
    version: int
    spec: Spec
    queue: int
    lane: int


def fire(limit: int, lead: Lead, new_id: Callable[[], UUID], now: Instant) -> Script[Fired]:
    """Decide due timers: ledger rows, parcels and the timers' advance in one transaction."""
    rows = yield Fetch(DUE, (now, limit))
    due = [_due(row) for row in rows]
    if not due:
        return Fired(0, [], {}, None)
    busy = yield from _still_live(due)
    decisions = [decide(d.timer.trigger, d.timer.rules, d.timer.decided_through, now, MOST_FIRES) for d in due]
    runs = [_allowed(d, decision, d.timer.last_execution in busy) for d, decision in zip(due, decisions, strict=True)]
    wanted = [(d, fire_at, since) for d, run in zip(due, runs, strict=True) for fire_at, since in run]
    placed, parcels = place([_execution(d, at, since, lead) for d, at, since in wanted], {}, new_id, now)
    lanes, wake_at = yield from put_parcels(parcels, now)
    executions = {(d.timer.id, at): mine[0].execution_id for (d, at, _), mine in zip(wanted, placed, strict=True)}
    yield from put_fires(_ledger(due, decisions, executions), now)
    yield from _advance(due, decisions, executions)
    return Fired(len(due), [p for p, _ in parcels], lanes, wake_at)


def _due(row: Row) -> _Due:
    timer = _timer((row[0], row[6], row[7], row[3], row[4], row[5]))
    spec = msgspec.json.decode(row[9], type=Spec)
    return _Due(
        timer=timer, namespace=row[2], job=row[1], name=row[12], version=row[8], spec=spec, queue=row[10], lane=row[11]
    )


def _still_live(due: Sequence[_Due]) -> Script[set[UUID]]:
    """Which of the timers' last executions have not ended."""
    last = {d.timer.last_execution for d in due if d.timer.last_execution and d.timer.rules.overlap == "skip"}
    if not last:
        return set()
    columns: Columns = (("execution", "uuid"), ("parcel", "uuid"), ("item", "int"))
    rows = yield ForEach(LIVE, columns, [(id, parcel_of(id), index_of(id)) for id in sorted(last)])
    return {row[0] for row in rows}


def _allowed(due: _Due, decision: Decision, busy: bool) -> list[tuple[Instant, Instant | None]]:
    """The fires that run: with overlap `skip`, none while the last runs, and of several only the newest."""
    fires = [(f.at, f.since) for f in decision.fires]
    if due.timer.rules.overlap != "skip":
        return fires
    return [] if busy else fires[-1:]


def _execution(due: _Due, at: Instant, since: Instant | None, lead: Lead) -> NewExecution:
    spec = due.spec
    envelope = Envelope(
        namespace=due.namespace, job=due.job, version=due.version, queue=due.queue, lane=due.lane,
        priority=spec.priority, due_at=due_at(due.timer.rules, f"{due.namespace}/{due.name}", at),
        delivery=AT_MOST_ONCE if spec.delivery == "at-most-once" else AT_LEAST_ONCE,
    )  # fmt: skip
    interval = None if since is None else (since, at)
    extra = Extra(origin="fire", trigger=due.timer.id, fire_at=at, interval=interval)
    return NewExecution(envelope=envelope, rank_lead=lead(due.queue, spec.priority), item=b"{}", extra=extra)


def _ledger(
    due: Sequence[_Due], decisions: Sequence[Decision], executions: dict[tuple[UUID, Instant], UUID]
) -> Iterable[tuple[UUID, LedgerRun, UUID | None]]:
    """One row per decided run; fires held back by an overlap say so."""
    for d, decision in zip(due, decisions, strict=True):
        for run in decision.ledger:
            execution = executions.get((d.timer.id, run.first))
            if run.disposition == "fired" and execution is None:
                cause = "the previous execution had not ended"
                run = LedgerRun(run.first, run.last, "skipped-overlap", cause)
            yield d.timer.id, run, execution if run.disposition == "fired" else None


def _advance(
    due: Sequence[_Due], decisions: Sequence[Decision], executions: dict[tuple[UUID, Instant], UUID]
) -> Script[None]:
    columns: Columns = (
        ("trigger_id", "uuid"), ("next_fire_at", "bigint"), ("decided_through", "bigint"), ("last_execution", "uuid"),
    )  # fmt: skip
    rows = []
    for d, decision in zip(due, decisions, strict=True):
        mine = [executions[d.timer.id, f.at] for f in decision.fires if (d.timer.id, f.at) in executions]
        last = mine[-1] if mine else d.timer.last_execution
        rows.append((d.timer.id, decision.next_fire_at, decision.decided_through, last))
    yield ForEach(ADVANCE, columns, rows)


def next_fire_at() -> Script[Instant | None]:
    """When the earliest timer is due."""
    rows = yield Fetch(NEXT_FIRE)
    value: Instant | None = rows[0][0]
    return value
