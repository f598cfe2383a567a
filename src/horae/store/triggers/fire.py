"""Fires of due timers: each nominal fire is decided once.

The transaction that records the fires and inserts their parcels also locks the timer's row and advances its
`decided_through`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant
from horae.model.admission.quota import UNBOUNDED, QuotaBounds
from horae.model.base.ids import parcel_of
from horae.model.executions.parcel import Parcel
from horae.store.admission.share_lanes import assign_share_lanes
from horae.store.base.shelves import Columns
from horae.store.executions.parcels import put_parcels
from horae.store.script import ForEach, Insert, Script, Statement
from horae.store.triggers import due as timers
from horae.store.triggers import turns
from horae.store.triggers.delays import NO_DELAYS, Delays, cause_of, delay_of
from horae.store.triggers.dependencies import waits
from horae.store.triggers.dependencies.arrivals import EndedItems, arrive
from horae.store.triggers.dependencies.dependents import lock_around
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.triggers.due import FIRST, DueTimer, Mark, Trouble
from horae.store.triggers.fire_decisions import DecidedTimer, decide_all, open_times_of
from horae.store.triggers.fire_parcels import pack_fires
from horae.store.triggers.refusals import RAN, screen_fires
from horae.store.triggers.targets import Lead
from horae.store.triggers.triggers import FIRES
from horae.store.triggers.turns import Turn, turn_key

ADVANCE = Statement(
    "advance_timers",
    "UPDATE timers SET next_fire_at = given.next_fire_at, decided_through = given.decided_through,"
    " last_execution = given.last_execution, fired = timers.fired + given.fired,"
    " moved_to = given.moved_to, trouble = NULL"
    " FROM given WHERE timers.trigger_id = given.trigger_id",
)
# decided_through stays as it is: the fires missed meanwhile are decided once that is possible again.
SET_ASIDE = Statement(
    "set_timers_aside",
    "UPDATE timers SET next_fire_at = given.next_fire_at, trouble = given.trouble FROM given"
    " WHERE timers.trigger_id = given.trigger_id",
)
ADVANCED: Columns = (
    ("trigger_id", "uuid"), ("next_fire_at", "bigint"), ("decided_through", "bigint"), ("last_execution", "uuid"),
    ("fired", "int"), ("moved_to", "bigint"),
)  # fmt: skip
AGAIN = 60 * SECOND  # pause before a trigger that could not be decided is tried again
SOON = 2 * SECOND  # the same for a trigger that waits for room


class FireResult(Struct, frozen=True):
    """The result of one firing step: the number of timers, the parcels, lanes and wake time for hints, and the
    troubles.
    """

    timers: int
    parcels: list[Parcel]
    lanes: dict[int, int]
    wake_at: Instant | None
    troubles: list[Trouble] = []
    blocked: bool = False  # an execution waits for its turn
    through: Mark | None = None  # the last of the timers


def fire(
    limit: int,
    lead: Lead,
    new_id: Callable[[], UUID],
    now: Instant,
    low: Mark = FIRST,
    holds: Delays = NO_DELAYS,
    bounds: QuotaBounds = UNBOUNDED,
) -> Script[FireResult]:
    """Decide due timers from a mark on: ledger rows, parcels and the advance of the timers in one transaction.

    Advanced timers leave dead entries in the index until it is vacuumed; `low` skips them. `holds` has the reasons that
    delay executions, as text for the ledger. A trigger that cannot be decided does not stop others from firing: it is
    set aside with the reason, and tried again later. A fire without room in `bounds` does not run, and the ledger says
    so.
    """
    rows = yield from timers.lock_due(low, now, limit)
    if not rows:
        return FireResult(0, [], {}, None)
    troubles: list[Trouble] = []
    due = yield from timers.read_due(rows, troubles)
    busy = yield from timers.still_live(due)
    keys = {d.timer.id: turn_key(d.target.job, d.timer.name) for d in due if d.timer.rules.overlap in turns.KEYED}
    turn_of = yield from turns.read_turns(set(keys.values()))
    turn_of |= yield from turns.adopt(_unruly(due, busy, turn_of))
    open_times = yield from open_times_of(due)
    decided = decide_all(due, busy, turn_of, open_times, lead, now, troubles, new_id)
    decided, sifted = yield from screen_fires(decided, bounds, new_id, now)
    terms = yield from assign_share_lanes([one for d in decided for one in d.wanted], now)
    executions, parcels = pack_fires(decided, terms, new_id, now)
    gated = {parcel.id for parcel, _ in parcels if turns.is_gated(parcel)} if keys else set()
    free = [(parcel, ahead) for parcel, ahead in parcels if parcel.id not in gated] if gated else parcels
    depending = {d.due.target.job for d in decided if d.due.target.spec.dependencies}
    held = {parcel.id for parcel, _ in free if parcel.envelope.job in depending} if depending else set()
    waited = (yield from timers.earlier_troubles(_late(decided, now))) if bounds else {}
    changes: list[ForEach | Insert] = [
        *_recorded(decided, executions, holds, waited, now),
        _set_aside(troubles, sifted.delayed, now),
    ]
    lanes, wake_at = yield from put_parcels(free, now, [*changes, *sifted.changes(executions)], held)
    yield from sifted.settle(new_id, now)
    ended = (yield from turns.settle([parcel for parcel, _ in parcels], _replaced(decided), now)) if keys else []
    if ended:  # one lock order for all, so executions that begin to wait are locked here, too
        yield from lock_around({one.job for one in ended} | depending)
    waiting = [wait for wait in _waits(decided, executions) if parcel_of(wait.execution) in held] if held else []
    done = yield from _follow(waiting, ended, Consequences(lanes=lanes, wake_at=wake_at), new_id, now)
    through = timers.last_of(rows)
    return FireResult(len(rows), [p for p, _ in parcels], done.lanes, done.next, troubles, bool(gated), through)


def _follow(
    waiting: Sequence[waits.Wait],
    ended: Sequence[EndedItems],
    done: Consequences,
    new_id: Callable[[], UUID],
    now: Instant,
) -> Script[Consequences]:
    """Let executions of jobs with dependencies begin to wait, and report replaced executions to their dependents."""
    if waiting:
        lanes, wake_at = yield from waits.begin(waiting, new_id, now, done)
        done = Consequences(lanes=lanes, wake_at=wake_at)
    if ended:
        yield from arrive(ended, new_id, now, done)
    return done


def _unruly(due: Iterable[DueTimer], live: Collection[UUID], turn_of: Mapping[str, Turn]) -> dict[str, UUID]:
    """Return running executions without their trigger's turn: they were fired while the trigger did not use turns."""
    found: dict[str, UUID] = {}
    if not turn_of:
        return found
    for d in due:
        key, last = turn_key(d.target.job, d.timer.name), d.timer.last_execution
        if last is not None and last in live and key in turn_of and turn_of[key].is_free:
            found[key] = last
    return found


def _replaced(decided: Iterable[DecidedTimer]) -> set[str]:
    """Return the turn keys of triggers whose new fire replaces the executions that wait."""
    return {
        turn_key(d.due.target.job, d.due.timer.name)
        for d in decided
        if d.decision.fires and d.due.timer.rules.overlap in ("queueOne", "cancelOther")
    }


def _waits(decided: Iterable[DecidedTimer], executions: Iterable[UUID]) -> Iterable[waits.Wait]:
    """Yield the waits of fires of jobs with dependencies: each waits for upstream executions of the same interval."""
    ids = iter(executions)
    for d in decided:
        for fire, terms in zip(d.decision.fires, d.wanted, strict=True):
            yield waits.Wait(
                dependent=d.due.target.job,
                execution=next(ids),
                interval=None if fire.since is None else (fire.since, fire.at),
                deadline=terms.envelope.due_at + d.due.target.spec.dependency_timeout,
                own=True,
            )


def _late(decided: Iterable[DecidedTimer], now: Instant) -> list[UUID]:
    """Return timers that may have waited for room before they were decided."""
    return [d.due.timer.id for d in decided if d.decision.ledger and d.decision.ledger[0].first <= now - SOON]


def _recorded(
    decided: Iterable[DecidedTimer], executions: Iterable[UUID], holds: Delays, waited: Mapping[UUID, str], now: Instant
) -> tuple[Insert, ForEach]:
    """Return the ledger rows, one per decided run, and the update that advances the timers.

    The row of a fire that ran names its execution and the reason for its delay. `decided` and `executions` are in the
    same order.
    """
    ids = iter(executions)
    ledger: list[tuple[object, ...]] = []
    advanced: list[tuple[object, ...]] = []
    for d in decided:
        timer, decision = d.due.timer, d.decision
        trigger, last = timer.id, timer.last_execution
        causes = _causes(d, holds, waited.get(trigger)) if holds or waited else None
        for run in decision.ledger:
            execution = None
            if run.disposition in RAN:
                execution = last = next(ids)
            cause = run.cause if causes is None else next(causes)
            ledger.append((trigger, run.first, run.last, run.disposition, cause, execution, now))
        following, through = decision.next_fire_at, decision.decided_through
        advanced.append((trigger, following, through, last, len(decision.fires), decision.moved_to))
    return Insert("fires", FIRES, ledger), ForEach(ADVANCE, ADVANCED, advanced)


def _causes(d: DecidedTimer, holds: Delays, waited: str | None) -> Iterator[str]:
    """Yield the cause of each run of a timer's fires, with the reason that delays its executions."""
    terms = iter(d.wanted)
    usual = holds.get(d.due.target.queue) or holds.get(d.due.target.job)
    for run in d.decision.ledger:
        delay = delay_of(holds, next(terms).envelope) if run.disposition in RAN else usual
        yield cause_of(run, delay, waited)


def _set_aside(troubles: Sequence[Trouble], delayed: Sequence[Trouble], now: Instant) -> ForEach:
    """Return the update that sets aside timers that cannot be decided or that wait for room."""
    columns: Columns = (("trigger_id", "uuid"), ("next_fire_at", "bigint"), ("trouble", "text"))
    later = [(t.trigger, now + SOON, t.reason) for t in delayed]
    return ForEach(SET_ASIDE, columns, [*((t.trigger, now + AGAIN, t.reason) for t in troubles), *later])
