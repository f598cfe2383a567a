"""Preemption: interruptible executions are asked to stop, and the executions that need their slots move to the front.

One server at a time decides for a namespace. It holds a lock for this purpose, which it takes before all other locks,
so it sees all requests that other servers have made before. A running slice is not moved: its session is locked, it is
checked again, and a request to stop is stored for the session.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.env import SECOND, Instant, Micros
from horae.model.admission.keys import PREEMPTIBLE, PREEMPTS
from horae.model.admission.limits import queue_limit
from horae.model.admission.placement.preempt import (
    ONE_SLOT,
    Candidate,
    Cost,
    Preemption,
    Waiter,
    WorkerCapacity,
    choose_victims,
    to_front,
)
from horae.model.executions.slice import QueuedSlice, part
from horae.model.fleet.session import Session
from horae.store.admission import coarse
from horae.store.admission.circuit_gates import SEEN_SHUT, shut_out
from horae.store.admission.key_rates import startable
from horae.store.base import shelves
from horae.store.executions.parcels import least_ranks
from horae.store.fleet.exchange import lock_sessions
from horae.store.fleet.sessions import HELD, live_sessions
from horae.store.script import Fetch, ForEach, Insert, Lock, Rows, Script, Statement

MAX_WAITERS = 64  # slices per statement
MOST_CANDIDATES = 1000
PATIENCE: Micros = 60 * SECOND  # so long after a request to stop, its slot is expected to become free
_WAITS = f"SELECT {shelves.names(shelves.QUEUED, 'q.')}, p.priority FROM queued q"
BY_JOB = Statement(
    "preempting_jobs",
    f"{_WAITS} JOIN parcels p ON p.id = q.parcel WHERE (q.flags & {PREEMPTS}) <> 0 ORDER BY q.lane, q.rank LIMIT $1",
)
BY_LANE = Statement(
    "preempting_lanes",
    f"{_WAITS} JOIN parcels p ON p.id = q.parcel WHERE q.lane = $1 ORDER BY q.rank, q.parcel, q.lo LIMIT $2",
)
CANDIDATES = Statement(
    "preemptible",
    "SELECT r.session, r.parcel, r.lo, r.hi, r.attempt, r.lane, r.queue, p.priority,"
    " coalesce(r.started_at, r.granted_at),"
    " (SELECT max(s.at) FROM steps s WHERE s.parcel = r.parcel AND s.item >= r.lo AND s.item < r.hi)"
    f" FROM running r JOIN parcels p ON p.id = r.parcel WHERE r.namespace = $1 AND (r.flags & {PREEMPTIBLE}) <> 0"
    " LIMIT $2",
)
ASKED = Statement(
    "asked_to_give_way",
    "SELECT q.parcel, q.item, q.session, q.created_at, r.lane FROM given JOIN requests q ON q.session = given.id"
    " JOIN running r ON r.parcel = q.parcel AND r.lo <= q.item AND r.hi > q.item WHERE q.kind = 'preempt'",
)
STILL = Statement(
    "still_running",
    "SELECT r.parcel, given.item, r.attempt, r.session FROM given JOIN running r ON r.parcel = given.parcel"
    " AND r.lo <= given.item AND r.hi > given.item AND r.session = given.session AND r.attempt = given.attempt",
)
FRONT = Statement(
    "to_front",
    f"SELECT {shelves.names(shelves.QUEUED, 'q.')} FROM queued q JOIN given ON q.parcel = given.parcel"
    " AND q.lo = given.lo FOR UPDATE OF q SKIP LOCKED",
)

MayTake = Callable[[Session], frozenset[int]]
CostOf = Callable[[int], Cost]  # the cost of one execution of a lane
CapacityOf = Callable[[Session], Cost]


class PreemptRules(Struct, frozen=True, kw_only=True):
    """Functions by which the script asks the server about workers and lanes."""

    may_take: MayTake  # returns the lanes from which a session may claim
    cost: CostOf = lambda lane: ONE_SLOT
    capacity: CapacityOf = lambda session: {"slots": session.concurrency}


class PreemptResult(Struct, frozen=True):
    """The result of `preempt`."""

    sessions: list[UUID]  # sessions with new requests to stop executions
    items: int  # the number of these executions
    lanes: dict[int, int]  # lanes with slices that moved to the front, each with their least rank


Waits = tuple[QueuedSlice, int]  # a queued slice and its priority


def waiters(lanes: Collection[int], paused: frozenset[UUID]) -> Script[dict[int, list[Waits]]]:
    """Return queued slices that may preempt others, by namespace: those of jobs that preempt, and all in these lanes.

    Slices of jobs in `paused` are left out.
    """
    rows = yield Fetch(BY_JOB, (MAX_WAITERS,))
    for lane in sorted(lanes):
        rows = rows + (yield Fetch(BY_LANE, (lane, MAX_WAITERS)))
    found: dict[int, dict[tuple[UUID, int], Waits]] = {}
    for row in rows:
        queued = shelves.queued(row)
        if queued.job not in paused:
            found.setdefault(queued.namespace, {})[queued.parcel, queued.lo] = queued, row[-1]
    return {namespace: list(those.values()) for namespace, those in found.items()}


def preempt(
    namespace: int, lanes: Collection[int], paused: frozenset[UUID], rules: PreemptRules, now: Instant
) -> Script[PreemptResult]:
    """Decide which running executions of a namespace give way; ask them to stop, and move those that need the slots to
    the front of their lanes.
    """
    yield Lock(names=(f"preempt:{namespace}",))  # guard: preempt-locks
    waiting = (yield from waiters(lanes, paused)).get(namespace, [])
    if not waiting:
        return PreemptResult([], 0, {})
    sessions = yield from live_sessions(namespace)
    ids = [(session.id,) for session in sessions]
    asked = yield ForEach(ASKED, (("id", "uuid"),), ids)
    workers = yield from _workers(sessions, asked, rules, now)
    candidates, queues = yield from _candidates(namespace, {(row[0], row[1]) for row in asked}, rules, now)
    wanting = yield from _startable(waiting, queues, rules, now)
    decided = choose_victims(wanting, workers, candidates)
    return (yield from _ask(decided, now))


def _startable(
    waiting: Sequence[Waits], queues: Counter[int], rules: PreemptRules, now: Instant
) -> Script[list[Waiter]]:
    """Return the waiting slices that could start if they had a slot: no open circuit, rate or limit keeps them back.

    This takes no lock, because the later claim checks all this again. The interruptible executions of a queue
    (`queues`) count as additional room under its limit, because one that stops makes room there.
    """
    priority = {(queued.parcel, queued.lo): level for queued, level in waiting}
    slices = [queued for queued, _ in sorted(waiting, key=lambda one: (-one[1], one[0].rank))]
    shut = {(one.parcel, one.lo) for one in (yield from shut_out(slices, SEEN_SHUT))}
    slices = yield from startable([queued for queued in slices if (queued.parcel, queued.lo) not in shut], now)
    rooms = yield from coarse.read_rooms({queue_limit(queued.queue) for queued in slices}, now)
    found: list[Waiter] = []
    for queued in slices:
        limits = (queue_limit(queued.queue),)
        count = min(queued.hi - queued.lo, rooms.available(limits, queued.lane) + queues[queued.queue])
        if count > 0:
            rooms.take(limits, count)
            found.append(
                Waiter(
                    parcel=queued.parcel, lo=queued.lo, hi=queued.lo + count, lane=queued.lane, rank=queued.rank,
                    priority=priority[queued.parcel, queued.lo], cost=rules.cost(queued.lane),
                )
            )  # fmt: skip
    return found


def _workers(
    sessions: Sequence[Session], asked: Rows, rules: PreemptRules, now: Instant
) -> Script[list[WorkerCapacity]]:
    """Return the capacity that each session has left, including slots of executions that were asked to stop."""
    left = {session.id: dict(rules.capacity(session)) for session in sessions}
    held = yield ForEach(HELD, (("id", "uuid"),), [(session.id,) for session in sessions])
    for session, lane, count in held:
        if session in left:
            _add(left[session], rules.cost(lane), -int(count))
    for _, _, session, created_at, lane in asked:
        if session in left and created_at > now - PATIENCE:  # guard: preempt-asked-already
            _add(left[session], rules.cost(lane), 1)
    return [WorkerCapacity(session=s.id, lanes=rules.may_take(s), left=left[s.id]) for s in sessions]


def _add(left: dict[str, int], cost: Cost, times: int) -> None:
    for name, amount in cost.items():
        left[name] = left.get(name, 0) + amount * times


def _candidates(
    namespace: int, asked: Collection[tuple[UUID, int]], rules: PreemptRules, now: Instant
) -> Script[tuple[list[Candidate], Counter[int]]]:
    """Return interruptible running executions that were not asked to stop yet; and by queue the number of all of them.

    The work that a stop would lose is the time since the start or the last finished durable step.
    """
    rows = yield Fetch(CANDIDATES, (namespace, MOST_CANDIDATES))
    queues: Counter[int] = Counter()
    for _, _, lo, hi, _, _, queue, *_ in rows:
        queues[queue] += hi - lo
    found = [
        Candidate(
            session=session, parcel=parcel, item=item, attempt=attempt, priority=priority,
            lost=max(0, now - max(since, step or 0)), cost=rules.cost(lane),
        )
        for session, parcel, lo, hi, attempt, lane, _, priority, since, step in rows
        for item in range(lo, min(hi, lo + MOST_CANDIDATES))
        if (parcel, item) not in asked
    ]  # fmt: skip
    return found, queues


def _ask(decided: Preemption, now: Instant) -> Script[PreemptResult]:
    """Lock the sessions of the chosen executions, check that these still run, and store the requests to stop.

    Then move the executions that need their slots to the front.
    """
    if not decided.victims:
        return PreemptResult([], 0, {})
    locked = yield from lock_sessions([victim.session for victim in decided.victims])  # guard: preempt-locks-sessions
    live = {session for session, row in locked.items() if row.live}  # guard: preempt-of-live-session
    columns: shelves.Columns = (("session", "uuid"), ("parcel", "uuid"), ("item", "int"), ("attempt", "int"))
    named = sorted((v.session, v.parcel, v.item, v.attempt) for v in decided.victims if v.session in live)
    still = yield ForEach(STILL, columns, named)
    first = decided.waiters[0]
    reason = f"for {first.parcel}"
    rows = [(parcel, item, attempt, "preempt", session, reason, now) for parcel, item, attempt, session in still]
    if not rows:
        return PreemptResult([], 0, {})
    yield Insert("requests", shelves.REQUESTS, rows, conflict="ON CONFLICT DO NOTHING")
    lanes = yield from _put_in_front(decided.waiters)
    return PreemptResult(sorted({row[4] for row in rows}), len(rows), lanes)


def _put_in_front(waiters: Sequence[Waiter]) -> Script[dict[int, int]]:
    """Rank these items first in their queues, because the slots that become free are for them.

    The other items of their slices keep their rank. Return the lanes of the items, each with the least new rank.
    """
    ends = {(waiter.parcel, waiter.lo): waiter.hi for waiter in waiters}
    rows = yield ForEach(FRONT, shelves.SPAN, sorted(ends))
    slices = [shelves.queued(row) for row in rows]
    front: list[QueuedSlice] = []
    rest: list[QueuedSlice] = []
    for queued in slices:
        cut = min(ends[queued.parcel, queued.lo], queued.hi)
        front.append(structs.replace(queued, hi=cut, rank=to_front(queued.rank)))
        if cut < queued.hi:
            rest.append(part(queued, cut, queued.hi))
    yield shelves.take("queued", slices)
    yield shelves.put_queued([*front, *rest])
    return least_ranks(front)
