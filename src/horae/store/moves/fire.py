"""Fire: due timers are decided, each nominal fire once.

The timer's row is locked, and `decided_through` advanced, in the transaction that records the fires and inserts their
parcels.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.model.calendar import Calendar, no_such_calendar
from horae.model.execution import Extra
from horae.model.ids import index_of, parcel_of
from horae.model.parcel import Parcel
from horae.model.trigger import Decision, Fire, LedgerRun, due_at, fill_fire_params, fire_scope
from horae.model.trigger.alike import Alike
from horae.model.trigger.by_calendar import decide_by_calendar
from horae.store.moves import calendars, shelves, turns, waits
from horae.store.moves.arrivals import arrive
from horae.store.moves.dependents import lock_around
from horae.store.moves.parcels import put_parcels
from horae.store.moves.placing import place
from horae.store.moves.promote import LONG_AGO
from horae.store.moves.shelves import Columns
from horae.store.moves.starts import Started
from horae.store.moves.submission import NewExecution
from horae.store.moves.targets import COLUMNS, JOINED, Lead, Target, execution_of, read_target
from horae.store.moves.triggers import COUNT, TIMER, Timer, fires_as_rows, read_timer, why
from horae.store.moves.turns import Turn, turn_key
from horae.store.script import Fetch, ForEach, Insert, Row, Script, Statement

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
LIVE = Statement(
    "live_executions",
    f"SELECT given.execution FROM given WHERE {shelves.is_live('given.parcel', 'given.item')}",
)
ADVANCE = Statement(
    "advance_timers",
    "UPDATE timers SET next_fire_at = given.next_fire_at, decided_through = given.decided_through,"
    " last_execution = given.last_execution, fired = timers.fired + given.fired,"
    " moved_to = given.moved_to, trouble = NULL"
    " FROM given WHERE timers.trigger_id = given.trigger_id",
)
# What was decided stays as it is: whatever it missed meanwhile is decided when it can be again.
SET_ASIDE = Statement(
    "set_timers_aside",
    "UPDATE timers SET next_fire_at = given.next_fire_at, trouble = given.trouble FROM given"
    " WHERE timers.trigger_id = given.trigger_id",
)
TROUBLED = Statement("troubled_timers", "SELECT count(*) FROM timers WHERE trouble IS NOT NULL")
NEXT = 6  # where a due timer's own instant is, of the columns of TIMER
TARGET = COUNT  # where a due timer's columns of its target begin
MOST_FIRES = 100  # that one trigger may run in one step
RAN = ("fired", "moved")  # dispositions that name an execution
AGAIN = 60 * SECOND  # until a trigger that could not be decided is tried again


NO_HOLDS: Mapping[int, str] = {}
Mark = tuple[Instant, UUID]  # a timer's place in the order in which they are due
FIRST: Mark = (LONG_AGO, UUID(int=0))
OpenTimes = Mapping[calendars.Wanted, Calendar]


class Trouble(Struct, frozen=True):
    """A trigger that could not be decided, and why."""

    trigger: UUID
    job: UUID
    reason: str


class Fired(Struct, frozen=True):
    """What a firing step did: how many timers it met, the parcels, lanes and timers to hint, and what it set aside."""

    timers: int
    parcels: list[Parcel]
    lanes: dict[int, int]
    wake_at: Instant | None
    troubles: list[Trouble] = []
    blocked: bool = False  # something waits for its turn
    through: Mark | None = None  # the last of the timers


class _Due(Struct, frozen=True, kw_only=True):
    """A due timer with what its executions need."""

    timer: Timer
    target: Target


class _Decided(Struct, frozen=True):
    """What a timer does now, and the executions of its fires in their order."""

    due: _Due
    decision: Decision
    wanted: list[NewExecution]


def fire(
    limit: int,
    lead: Lead,
    new_id: Callable[[], UUID],
    now: Instant,
    low: Mark = FIRST,
    holds: Mapping[int, str] = NO_HOLDS,
) -> Script[Fired]:
    """Decide timers that are due since an instant: ledger rows, parcels and the timers' advance in one transaction.

    Those that were advanced lie dead in the index until it is vacuumed: `low` passes them over. `holds` tells in words
    until when queues are held: the ledger says so of fires whose executions wait for that.
    One that cannot be decided keeps nobody else from firing: it is set aside with the reason, and tried again later.
    """
    rows = yield Fetch(DUE, (*low, now, limit))
    if not rows:
        return Fired(0, [], {}, None)
    troubles: list[Trouble] = []
    due = list(_read(rows, troubles))
    busy = yield from _still_live(due)
    keys = {d.timer.id: turn_key(d.target.job, d.timer.name) for d in due if d.timer.rules.overlap in turns.KEYED}
    standing = yield from turns.look(set(keys.values()))
    standing |= yield from turns.adopt(_unruly(due, busy, standing))
    open_times = yield from _calendars(due)
    decided = list(_decide(due, busy, standing, open_times, lead, now, troubles))
    placed, parcels = place([one for d in decided for one in d.wanted], {}, new_id, now)
    gated = {parcel.id for parcel, _ in parcels if turns.is_gated(parcel)} if keys else set()
    free = [(parcel, ahead) for parcel, ahead in parcels if parcel.id not in gated] if gated else parcels
    depending = {d.due.target.job for d in decided if d.due.target.spec.dependencies}
    held = {parcel.id for parcel, _ in free if parcel.envelope.job in depending} if depending else set()
    ids = iter([mine[0].execution_id for mine in placed])
    executions = {(d.due.timer.id, fire.at): next(ids) for d in decided for fire in d.decision.fires}
    ledger = fires_as_rows(_ledger(decided, executions, holds), now)
    also: list[ForEach | Insert] = [ledger, _advance(decided, executions), _set_aside(troubles, now)]
    lanes, wake_at = yield from put_parcels(free, now, also, held)
    over = (yield from turns.settle([parcel for parcel, _ in parcels], _replaced(decided), now)) if keys else []
    if over:  # all in order: those that begin to wait are locked too
        yield from lock_around({one.job for one in over} | depending)
    if held:
        waiting = [wait for wait in _waits(decided, executions) if parcel_of(wait.execution) in held]
        lanes, wake_at = yield from waits.begin(waiting, new_id, now, Started(lanes=lanes, wake_at=wake_at))
    if over:
        done = Started(lanes=lanes, wake_at=wake_at)
        yield from arrive(over, new_id, now, done)
        lanes, wake_at = done.lanes, done.next
    through = max(map(_mark, rows))
    return Fired(len(rows), [p for p, _ in parcels], lanes, wake_at, troubles, bool(gated), through)


def _unruly(due: Iterable[_Due], live: Collection[UUID], standing: Mapping[str, Turn]) -> dict[str, UUID]:
    """Executions that run without their trigger's turn, because it did not ask for turns when it fired them."""
    found: dict[str, UUID] = {}
    if not standing:
        return found
    for d in due:
        key, last = turn_key(d.target.job, d.timer.name), d.timer.last_execution
        if last is not None and last in live and key in standing and standing[key].is_free:
            found[key] = last
    return found


def _replaced(decided: Iterable[_Decided]) -> set[str]:
    """The keys of triggers whose new fire takes the place of those that wait."""
    return {
        turn_key(d.due.target.job, d.due.timer.name)
        for d in decided
        if d.decision.fires and d.due.timer.rules.overlap in ("queueOne", "cancelOther")
    }


def _waits(decided: Iterable[_Decided], executions: dict[tuple[UUID, Instant], UUID]) -> Iterable[waits.Wait]:
    """Fires of jobs that depend on others wait for the executions of these of the same interval."""
    for d in decided:
        for fire, wanted in zip(d.decision.fires, d.wanted, strict=True):
            yield waits.Wait(
                dependent=d.due.target.job,
                execution=executions[d.due.timer.id, fire.at],
                interval=wanted.extra.interval,
                deadline=wanted.envelope.due_at + d.due.target.spec.dependency_timeout,
                own=True,
            )


def _mark(row: Row) -> Mark:
    return row[NEXT], row[0]


def _read(rows: Sequence[Row], troubles: list[Trouble]) -> Iterable[_Due]:
    targets: dict[UUID, Target] = {}
    for row in rows:
        try:
            job = row[TARGET]
            target = targets.get(job) or targets.setdefault(job, read_target(row, TARGET))
            yield _Due(timer=read_timer(row), target=target)
        except Exception as error:
            troubles.append(Trouble(row[0], row[TARGET], why(error)))


def _still_live(due: Sequence[_Due]) -> Script[set[UUID]]:
    """Which of the timers' last executions have not ended."""
    last = {d.timer.last_execution for d in due if d.timer.last_execution and d.timer.rules.overlap != "allow"}
    if not last:
        return set()
    columns: Columns = (("execution", "uuid"), ("parcel", "uuid"), ("item", "int"))
    rows = yield ForEach(LIVE, columns, [(id, parcel_of(id), index_of(id)) for id in sorted(last)])
    return {row[0] for row in rows}


def _calendars(due: Sequence[_Due]) -> Script[OpenTimes]:
    """The calendars that the timers go by, as they were and are since these decided last."""
    going = [d for d in due if d.timer.rules.calendars]
    if not going:
        return {}
    wanted = {(d.target.namespace, d.timer.rules.calendars) for d in going}
    return (yield from calendars.compiled(sorted(wanted), min(d.timer.decided_through for d in going)))


def _decide(
    due: Sequence[_Due],
    live: Collection[UUID],
    standing: Mapping[str, Turn],
    open_times: OpenTimes,
    lead: Lead,
    now: Instant,
    troubles: list[Trouble],
) -> Iterable[_Decided]:
    alike = Alike(now, MOST_FIRES)
    for d in due:
        t = d.timer
        key = turn_key(d.target.job, t.name) if standing else ""
        turn = standing.get(key) or Turn(busy=t.last_execution in live)
        try:
            if t.rules.calendars:
                decision = _decide_by(open_times.get((d.target.namespace, t.rules.calendars)), t, turn, now)
            else:
                decision = alike.decide(
                    t.trigger, t.rules, t.decided_through, fired=t.fired, busy=turn.busy, waiting=turn.waiting
                )
            wanted = [_execution(d, fire, lead) for fire in decision.fires]
            if key in standing:
                wanted = turns.gated(wanted, key, turn)
        except Exception as error:
            troubles.append(Trouble(t.id, d.target.job, why(error)))
        else:
            yield _Decided(d, decision, wanted)


def _decide_by(calendar: Calendar | None, t: Timer, turn: Turn, now: Instant) -> Decision:
    if calendar is None:
        raise no_such_calendar(" and ".join(t.rules.calendars), ())
    return decide_by_calendar(
        t.trigger, t.rules, calendar, t.decided_through, now, MOST_FIRES, fired=t.fired, busy=turn.busy,
        waiting=turn.waiting, moved_to=t.moved_to,
    )  # fmt: skip


def _execution(due: _Due, fire: Fire, lead: Lead) -> NewExecution:
    timer, target, at, since = due.timer, due.target, fire.at, fire.since
    interval = None if since is None else (since, at)
    extra = Extra(origin="fire", trigger=timer.id, fire_at=at, interval=interval)
    item = b"{}"
    if timer.params:
        item = fill_fire_params(timer.params, fire_scope(target.spec.params, timer.name, at, since))
    key = f"{target.key}/{timer.name}" if timer.rules.jitter else ""
    due_then = due_at(timer.rules, key, at) + (0 if fire.due is None else fire.due - at)
    return execution_of(target, extra, lead, due_at=due_then, item=item)


def _ledger(
    decided: Sequence[_Decided], executions: dict[tuple[UUID, Instant], UUID], holds: Mapping[int, str]
) -> Iterable[tuple[UUID, LedgerRun, UUID | None]]:
    """One row per decided run; a fire's own names its execution, and says if its queue is held."""
    for d in decided:
        id = d.due.timer.id
        held = holds.get(d.due.target.queue) if holds else None
        for run in d.decision.ledger:
            if held and run.disposition == "fired":
                run = LedgerRun(run.first, run.last, run.disposition, held)
            yield id, run, executions[id, run.first] if run.disposition in RAN else None


def _advance(decided: Sequence[_Decided], executions: dict[tuple[UUID, Instant], UUID]) -> ForEach:
    columns: Columns = (
        ("trigger_id", "uuid"), ("next_fire_at", "bigint"), ("decided_through", "bigint"), ("last_execution", "uuid"),
        ("fired", "int"), ("moved_to", "bigint"),
    )  # fmt: skip
    rows = []
    for d in decided:
        timer, fires = d.due.timer, d.decision.fires
        last = executions[timer.id, fires[-1].at] if fires else timer.last_execution
        decision = d.decision
        rows.append((timer.id, decision.next_fire_at, decision.decided_through, last, len(fires), decision.moved_to))
    return ForEach(ADVANCE, columns, rows)


def _set_aside(troubles: Sequence[Trouble], now: Instant) -> ForEach:
    columns: Columns = (("trigger_id", "uuid"), ("next_fire_at", "bigint"), ("trouble", "text"))
    return ForEach(SET_ASIDE, columns, [(t.trigger, now + AGAIN, t.reason) for t in troubles])


def troubled() -> Script[int]:
    """How many triggers cannot be decided."""
    rows = yield Fetch(TROUBLED)
    return int(rows[0][0])


def next_fire_at(low: Mark) -> Script[Instant | None]:
    """When the earliest timer from a mark on is due."""
    rows = yield Fetch(NEXT_FIRE, (low[0],))
    value: Instant | None = rows[0][0]
    return value
