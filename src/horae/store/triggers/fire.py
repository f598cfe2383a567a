"""Fires of due timers: each nominal fire is decided exactly once.

The reason is that one transaction locks the timer's row, records the fires, inserts their parcels and advances the
timer's `decided_through`.
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
# `decided_through` is not changed, so that the fires of the meantime are decided as soon as this is possible again.
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
    """The result of one call of `fire`."""

    timers: int  # the number of due timers that were locked
    parcels: list[Parcel]  # the parcels of the new executions
    lanes: dict[int, int]  # lanes with new executions, each with their least rank
    wake_at: Instant | None  # when the waiting executions or joins are due next
    troubles: list[Trouble] = []  # triggers that could not be decided
    blocked: bool = False  # whether a new execution waits for its turn
    through: Mark | None = None  # the last of the timers, in the order of due times


def fire(
    limit: int,
    lead: Lead,
    new_id: Callable[[], UUID],
    now: Instant,
    low: Mark = FIRST,
    delays: Delays = NO_DELAYS,
    bounds: QuotaBounds = UNBOUNDED,
) -> Script[FireResult]:
    """Decide at most `limit` due timers, from the position `low` on in the order of due times.

    Ledger rows, parcels and the new due times of the timers are written in one transaction. A new due time leaves a
    dead entry in the index until PostgreSQL vacuums it; `low` is there to skip these entries. `delays` has the reasons
    that delay executions, as text for the ledger. A trigger that cannot be decided does not stop others from firing: it
    gets a later due time, its row records the reason, and it is tried again then. If the quotas in `bounds` have no
    room for a fire, it is decided later if the quota lets it wait; otherwise it does not run, and the ledger says so.
    """
    rows = yield from timers.lock_due(low, now, limit)
    if not rows:
        return FireResult(0, [], {}, None)
    troubles: list[Trouble] = []
    due = yield from timers.read_due(rows, troubles)
    busy = yield from timers.still_live(due)
    keys = {d.timer.id: turn_key(d.target.job, d.timer.name) for d in due if d.timer.rules.overlap in turns.KEYED}
    turn_of = yield from turns.read_turns(set(keys.values()))
    turn_of |= yield from turns.adopt(_live_without_turn(due, busy, turn_of))
    open_times = yield from open_times_of(due)
    decided = decide_all(due, busy, turn_of, open_times, lead, now, troubles, new_id)
    decided, sifted = yield from screen_fires(decided, bounds, new_id, now)
    new_executions = yield from assign_share_lanes([one for d in decided for one in d.wanted], now)
    executions, parcels = pack_fires(decided, new_executions, new_id, now)
    gated = {parcel.id for parcel, _ in parcels if turns.is_gated(parcel)} if keys else set()
    free = [(parcel, ahead) for parcel, ahead in parcels if parcel.id not in gated] if gated else parcels
    depending = {d.due.target.job for d in decided if d.due.target.spec.dependencies}
    held = {parcel.id for parcel, _ in free if parcel.envelope.job in depending} if depending else set()
    waited = (yield from timers.earlier_troubles(_may_have_waited(decided, now))) if bounds else {}
    changes: list[ForEach | Insert] = [
        *_record_fires(decided, executions, delays, waited, now),
        _set_aside(troubles, sifted.delayed, now),
    ]
    lanes, wake_at = yield from put_parcels(free, now, [*changes, *sifted.changes(executions)], held)
    yield from sifted.settle(new_id, now)
    ended = (yield from turns.settle([parcel for parcel, _ in parcels], _replaced(decided), now)) if keys else []
    if ended:  # all dependents are locked in one order; this includes those for which `_follow` lets executions wait
        yield from lock_around({one.job for one in ended} | depending)
    waiting = [wait for wait in _waits(decided, executions) if parcel_of(wait.execution) in held] if held else []
    begun = yield from _follow(waiting, ended, Consequences(lanes=lanes, wake_at=wake_at), new_id, now)
    through = timers.last_of(rows)
    return FireResult(len(rows), [p for p, _ in parcels], begun.lanes, begun.next, troubles, bool(gated), through)


def _follow(
    waiting: Sequence[waits.Wait],
    ended: Sequence[EndedItems],
    consequences: Consequences,
    new_id: Callable[[], UUID],
    now: Instant,
) -> Script[Consequences]:
    """Let executions of jobs with dependencies begin to wait for these, and report ended executions to dependents.

    The ended executions are those that newer fires have replaced.
    """
    if waiting:
        lanes, wake_at = yield from waits.begin(waiting, new_id, now, consequences)
        consequences = Consequences(lanes=lanes, wake_at=wake_at)
    if ended:
        yield from arrive(ended, new_id, now, consequences)
    return consequences


def _live_without_turn(due: Iterable[DueTimer], live: Collection[UUID], turn_of: Mapping[str, Turn]) -> dict[str, UUID]:
    """Return live executions that should have the turn of their trigger but do not, by the key of the turn.

    They were fired before the trigger got an overlap policy that uses turns.
    """
    found: dict[str, UUID] = {}
    if not turn_of:
        return found
    for d in due:
        key, last = turn_key(d.target.job, d.timer.name), d.timer.last_execution
        if last is not None and last in live and key in turn_of and turn_of[key].is_free:
            found[key] = last
    return found


def _replaced(decided: Iterable[DecidedTimer]) -> set[str]:
    """Return the keys of the turns for which a new fire replaces the executions that wait, by the overlap policy."""
    return {
        turn_key(d.due.target.job, d.due.timer.name)
        for d in decided
        if d.decision.fires and d.due.timer.rules.overlap in ("queueOne", "cancelOther")
    }


def _waits(decided: Iterable[DecidedTimer], executions: Iterable[UUID]) -> Iterable[waits.Wait]:
    """Yield a wait for each fire: its execution would wait for upstream executions of the same interval.

    The caller uses only those of jobs with dependencies.
    """
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


def _may_have_waited(decided: Iterable[DecidedTimer], now: Instant) -> list[UUID]:
    """Return timers that may have waited for room in a quota, because their first fire is two seconds old or older."""
    return [d.due.timer.id for d in decided if d.decision.ledger and d.decision.ledger[0].first <= now - SOON]


def _record_fires(
    decided: Iterable[DecidedTimer],
    executions: Iterable[UUID],
    delays: Delays,
    waited: Mapping[UUID, str],
    now: Instant,
) -> tuple[Insert, ForEach]:
    """Return the Insert of ledger rows, one for each run of fires, and the update that advances the timers.

    The row of a fire that ran has its execution, and as cause the reason why the execution is delayed. `executions` are
    in the order of the fires in `decided`.
    """
    ids = iter(executions)
    ledger: list[tuple[object, ...]] = []
    advanced: list[tuple[object, ...]] = []
    for d in decided:
        timer, decision = d.due.timer, d.decision
        trigger, last = timer.id, timer.last_execution
        causes = _causes(d, delays, waited.get(trigger)) if delays or waited else None
        for run in decision.ledger:
            execution = None
            if run.disposition in RAN:
                execution = last = next(ids)
            cause = run.cause if causes is None else next(causes)
            ledger.append((trigger, run.first, run.last, run.disposition, cause, execution, now))
        following, through = decision.next_fire_at, decision.decided_through
        advanced.append((trigger, following, through, last, len(decision.fires), decision.moved_to))
    return Insert("fires", FIRES, ledger), ForEach(ADVANCE, ADVANCED, advanced)


def _causes(d: DecidedTimer, delays: Delays, waited: str | None) -> Iterator[str]:
    """Yield the cause of each run of a timer's fires, with the reason why its executions are delayed."""
    terms = iter(d.wanted)
    usual = delays.get(d.due.target.queue) or delays.get(d.due.target.job)
    for run in d.decision.ledger:
        delay = delay_of(delays, next(terms).envelope) if run.disposition in RAN else usual
        yield cause_of(run, delay, waited)


def _set_aside(troubles: Sequence[Trouble], delayed: Sequence[Trouble], now: Instant) -> ForEach:
    """Return the update that gives a later due time to timers that cannot be decided or that wait for room."""
    columns: Columns = (("trigger_id", "uuid"), ("next_fire_at", "bigint"), ("trouble", "text"))
    later = [(t.trigger, now + SOON, t.reason) for t in delayed]
    return ForEach(SET_ASIDE, columns, [*((t.trigger, now + AGAIN, t.reason) for t in troubles), *later])
