"""Starts: when a join is complete, an execution of the dependent is created, or the one that waits is released."""

from collections.abc import Callable, Collection, Iterable, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import SECOND, Instant, Micros
from horae.model.admission.key_gate import woken_slice
from horae.model.admission.keys import KEYED
from horae.model.admission.policy import PRIORITY, Policy, ShortestPolicy, order_within
from horae.model.admission.rank import RankLeads
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Parcel
from horae.model.executions.slice import QueuedSlice, WaitingSlice, gaps, part
from horae.model.executions.submission import NewExecution, deadline_after
from horae.model.triggers.dependency import Join, Parts
from horae.store.admission.share_lanes import assign_share_lanes
from horae.store.base import shelves
from horae.store.executions.entering.placing import place
from horae.store.executions.parcels import put_parcels
from horae.store.executions.promote import to_queue
from horae.store.executions.state_changes import FinishedItems, StepChange
from horae.store.fleet.expected_durations import expected_of
from horae.store.script import ForEach, Row, Script, Statement
from horae.store.triggers.dependencies import dependency_fires
from horae.store.triggers.targets import Lead, Target, execution_of, targets

REASON = "dependency"  # the wait reason of executions that wait for dependencies
RECHECK_PAUSE = (
    SECOND  # if another transaction has locked the row of an execution, it is checked again after this pause
)
POLICIES = Statement("queue_policies", "SELECT q.id, q.policy FROM given JOIN queues q ON q.id = given.queue")
# SKIP LOCKED: a row that another transaction has locked is left out, because that transaction moves it. The join of the
# execution is then checked again, see RECHECK_PAUSE.
WAITS = Statement(
    "waiting_for_dependencies",
    f"SELECT {shelves.names(shelves.WAITING, 'w.')}, p.lane, p.due_at, p.priority, p.deadline, given.item FROM given"
    " JOIN waiting w ON w.parcel = given.parcel AND w.lo <= given.item AND w.hi > given.item"
    f" JOIN parcels p ON p.id = w.parcel WHERE w.reason = '{REASON}' FOR UPDATE OF w SKIP LOCKED",
)
STILL = Statement(
    "still_waiting",
    "SELECT w.parcel, given.item FROM given JOIN waiting w ON w.parcel = given.parcel AND w.lo <= given.item"
    f" AND w.hi > given.item WHERE w.reason = '{REASON}'",
)
_read_policy = msgspec.json.Decoder(Policy).decode

NewId = Callable[[], UUID]


class DependentStart(Struct, frozen=True, kw_only=True):
    """An execution to create, because the dependencies of a job are met."""

    dependent: UUID  # the job
    upstream: tuple[UUID, ...]  # the executions that met the dependencies
    join: Join | None = None  # None: it starts because every upstream has an unused end, see `arrivals.by_count`

    @property
    def extra(self) -> Extra:
        interval = None if self.join is None else self.join.interval
        return Extra(origin=REASON, interval=interval, upstream=self.upstream)


class Consequences(Struct):
    """The consequences of ended executions for jobs and workflows that depend on them.

    Scripts add to it inside a transaction. After the commit, the server publishes hints and events about it.
    """

    lanes: dict[int, int] = {}  # lanes that got executions -> the lowest rank of these executions
    parcels: list[Parcel] = []  # the parcels of new executions
    released: list[QueuedSlice] = []  # executions that moved from `waiting` to `queued`
    wake_at: Instant | None = None  # the earliest due time of waiting executions
    check_at: Instant | None = None  # the earliest time to check joins and workflows
    ended_workflows: list[FinishedItems] = []  # workflows that ended because their steps have ended
    stepped: list[StepChange] = []  # steps of workflows that changed their state
    keeps_newborn: bool = False  # set by the caller: steps that may run at once are put into `newborn`, not queued
    newborn: list[QueuedSlice] = []  # these steps; the caller must put them on a shelf
    open_lanes: set[int] = set()  # lanes of new steps without a hold or a limit; valid until the transaction commits

    def queue(self, slices: Iterable[QueuedSlice]) -> None:
        for queued in slices:
            self.released.append(queued)
            self.queue_lane(queued.lane, queued.rank)

    def queue_lane(self, lane: int, rank: int) -> None:
        self.lanes[lane] = min(rank, self.lanes.get(lane, rank))

    def check_by(self, at: Instant | None) -> None:
        if at is not None:
            self.check_at = at if self.check_at is None else min(at, self.check_at)

    def wake_by(self, at: Instant | None) -> None:
        if at is not None:
            self.wake_at = at if self.wake_at is None else min(at, self.wake_at)

    @property
    def next(self) -> Instant | None:
        """The earliest time to check waiting executions, joins or workflows again."""
        return min((at for at in (self.wake_at, self.check_at) if at is not None), default=None)


def upstream_executions(needed: Collection[UUID], parts: Parts) -> tuple[UUID, ...]:
    """Return the executions of needed upstreams that have ended (have a `JoinPart`), sorted by the upstream's id."""
    return tuple(parts[upstream].execution for upstream in sorted(needed) if upstream in parts)


def _asked(target: Target, extra: Extra, lead: Lead, new_id: NewId, now: Instant) -> NewExecution:
    deadline = deadline_after(now, target.spec.within)
    return execution_of(target, extra, lead, deadline=deadline, new_id=new_id)


def start(
    wanted: Sequence[DependentStart], new_id: NewId, now: Instant, consequences: Consequences
) -> Script[list[Join]]:
    """Create executions of dependents, and return their joins with the new state, for the caller to write.

    No execution is created for a deleted job.
    """
    if not wanted:
        return []
    found = yield from targets({one.dependent for one in wanted})
    alive = [
        one
        for one in wanted
        if one.dependent in found and found[one.dependent].state != "deleted"  # guard: dependent-not-deleted
    ]
    lead = yield from lead_function(found.values(), now)
    executions = [_asked(found[one.dependent], one.extra, lead, new_id, now) for one in alive]
    made = yield from _put(alive, executions, new_id, now, consequences)
    return [
        structs.replace(one.join, state="started", execution=execution, deadline=None, wake_at=None)
        for one, execution in zip(alive, made, strict=True)
        if one.join is not None
    ]


def _put(
    starts: Sequence[DependentStart],
    asked: Sequence[NewExecution],
    new_id: NewId,
    now: Instant,
    consequences: Consequences,
) -> Script[list[UUID]]:
    placed, parcels = place((yield from assign_share_lanes(asked, now)), {}, new_id, now)
    made = [receipts[0].execution_id for receipts in placed]
    fires = dependency_fires.fired(((s.dependent, s.join, e) for s, e in zip(starts, made, strict=True)), now)
    lanes, wake_at = yield from put_parcels(parcels, now, [fires])
    consequences.wake_by(wake_at)
    for lane, rank in lanes.items():
        consequences.queue_lane(lane, rank)
    consequences.parcels += [parcel for parcel, _ in parcels]
    return made


def lead_function(found: Iterable[Target], now: Instant) -> Script[Lead]:
    """Return the function that computes rank leads, for the jobs and queues of these targets."""
    found = list(found)
    return (yield from lead_function_for({target.queue for target in found}, {target.job for target in found}, now))


def lead_function_for(queues: Collection[int], jobs: Collection[UUID], now: Instant) -> Script[Lead]:
    """Return the function that computes rank leads, for executions of these jobs in these queues."""
    policies = yield from policies_of(queues)
    learned: dict[UUID, Micros] = {}
    if any(isinstance(order_within(policy), ShortestPolicy) for policy in policies.values()):
        learned = yield from expected_of(jobs, now)
    return RankLeads(lambda queue: policies.get(queue, PRIORITY), lambda job: learned.get(job, 0))


def policies_of(queues: Collection[int]) -> Script[dict[int, Policy]]:
    """Return the order policies of queues."""
    rows = yield ForEach(POLICIES, (("queue", "int"),), [(queue,) for queue in sorted(queues)])
    return {queue: _read_policy(policy) for queue, policy in rows}


def release(joins: Sequence[Join], now: Instant, consequences: Consequences) -> Script[list[Join]]:
    """Release the waiting executions of joins, and return the joins with their new state, for the caller to write.

    A released execution is queued, or waits for its due time, its limits or its sequence. If another transaction has
    locked an execution, its join is checked again later. If an execution no longer waits, it was ended in another way,
    and the join ends, too.
    """
    if not joins:
        return []
    taken = yield from take(joins)
    lead = yield from lead_function_for({row[4] for row in taken.values()}, {row[3] for row in taken.values()}, now)
    queued: list[QueuedSlice] = []
    later: list[WaitingSlice] = []
    for execution, row in sorted(taken.items()):
        waiting = part(shelves.waiting(row), index_of(execution), index_of(execution) + 1)
        lane, due_at, priority, deadline, _ = row[len(shelves.WAITING) :]
        if due_at > now:
            later.append(structs.replace(waiting, reason="delay", wake_at=due_at, gate=None))
            consequences.wake_by(due_at)
        else:
            rank = lead.rank(waiting.queue, due_at, priority, deadline, waiting.job)
            if waiting.flags & KEYED:
                later.append(woken_slice(waiting, rank, now))
                consequences.wake_by(now)
            else:
                queued.append(to_queue(waiting, lane, rank, now))
    if queued:
        yield shelves.put_queued(queued)
        consequences.queue(queued)
    if later:
        yield shelves.put_waiting(later)
    return (yield from _released(joins, taken, now, consequences))


def _released(
    joins: Sequence[Join], taken: Collection[UUID], now: Instant, consequences: Consequences
) -> Script[list[Join]]:
    gone = [join for join in joins if join.execution not in taken]
    held = yield from still_waiting(gone)
    again = now + RECHECK_PAUSE
    if held:
        consequences.check_by(again)
    return [
        structs.replace(join, wake_at=again)
        if join.execution in held
        else structs.replace(join, state="started" if join.execution in taken else "ended", wake_at=None)
        for join in joins
    ]


def take(joins: Sequence[Join]) -> Script[dict[UUID, Row]]:
    """Take the executions of joins off `waiting`; return their rows by execution.

    Other items of the same slices stay on `waiting`. Executions that no longer wait, or whose row another transaction
    has locked, are left out.
    """
    rows = yield ForEach(WAITS, shelves.ITEM, _items(joins))
    slices: dict[tuple[UUID, int], tuple[WaitingSlice, list[int]]] = {}
    for row in rows:
        slices.setdefault((row[0], row[1]), (shelves.waiting(row), []))[1].append(row[-1])
    if slices:
        yield shelves.take("waiting", [waiting for waiting, _ in slices.values()])
        rest = [
            part(waiting, lo, hi)
            for waiting, items in slices.values()
            for lo, hi in gaps(waiting.lo, waiting.hi, [(item, item + 1) for item in items])
        ]
        if rest:
            yield shelves.put_waiting(rest)
    return {execution_id(row[0], row[-1]): row for row in rows}


def still_waiting(joins: Sequence[Join]) -> Script[set[UUID]]:
    """Return the executions of joins that still wait, also those whose row another transaction has locked."""
    if not joins:
        return set()
    rows = yield ForEach(STILL, shelves.ITEM, _items(joins))
    return {execution_id(parcel, item) for parcel, item in rows}


def _items(joins: Sequence[Join]) -> list[tuple[UUID, int]]:
    return sorted({(parcel_of(j.execution), index_of(j.execution)) for j in joins if j.execution is not None})
