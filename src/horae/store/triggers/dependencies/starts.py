"""Starts: dependents whose join is complete get their execution, or the one that waits goes on."""

from collections.abc import Callable, Collection, Iterable, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.env import SECOND, Instant, Micros
from horae.model.admission.key_gate import on_the_way
from horae.model.admission.keys import KEYED
from horae.model.admission.policy import PRIORITY, Policy, ShortestPolicy, inner
from horae.model.admission.rank import RankLeads
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Parcel
from horae.model.executions.slice import Queued, Waiting, gaps, part
from horae.model.executions.submission import NewExecution, deadline_after
from horae.model.triggers.dependency import Join, Parts
from horae.store.admission.share_lanes import in_their_lanes
from horae.store.base import shelves
from horae.store.executions.entering.placing import place
from horae.store.executions.parcels import put_parcels
from horae.store.executions.promote import to_queue
from horae.store.executions.state_changes import Ended, Stepped
from horae.store.fleet.expected_durations import expected_of
from horae.store.script import ForEach, Row, Script, Statement
from horae.store.triggers.dependencies import dependency_fires
from horae.store.triggers.targets import Lead, Target, execution_of, targets

REASON = "dependency"  # why such an execution waits
AGAIN = SECOND  # until what somebody else holds is looked at again
POLICIES = Statement("queue_policies", "SELECT q.id, q.policy FROM given JOIN queues q ON q.id = given.queue")
# Nobody waits for a row of this shelf: who holds it moves it, and the join is looked at again.
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
    """An execution to be made, because of these executions of its upstreams."""

    dependent: UUID
    upstream: tuple[UUID, ...]
    join: Join | None = None

    @property
    def extra(self) -> Extra:
        interval = None if self.join is None else self.join.interval
        return Extra(origin=REASON, interval=interval, upstream=self.upstream)


class Consequences(Struct):
    """What followed from the ends of executions: lanes with their least new rank, and whether to look again soon."""

    lanes: dict[int, int] = {}
    parcels: list[Parcel] = []
    released: list[Queued] = []
    wake_at: Instant | None = None  # of what waits for its time
    look_at: Instant | None = None  # of joins and workflows
    ended: list[Ended] = []  # workflows that ended because their last step did
    stepped: list[Stepped] = []  # their steps that went on
    keeps_newborn: bool = False  # whether steps that may run at once are left to whoever asked, instead of the queue
    newborn: list[Queued] = []
    open: set[int] = set()  # lanes that neither a hold nor a limit is about, until the commit

    def queue(self, slices: Iterable[Queued]) -> None:
        for slice in slices:
            self.released.append(slice)
            self.queue_lane(slice.lane, slice.rank)

    def queue_lane(self, lane: int, rank: int) -> None:
        self.lanes[lane] = min(rank, self.lanes.get(lane, rank))

    def look(self, at: Instant | None) -> None:
        if at is not None:
            self.look_at = at if self.look_at is None else min(at, self.look_at)

    def wake(self, at: Instant | None) -> None:
        if at is not None:
            self.wake_at = at if self.wake_at is None else min(at, self.wake_at)

    @property
    def next(self) -> Instant | None:
        """When somebody has to look again, at what waits for its time or at joins."""
        return min((at for at in (self.wake_at, self.look_at) if at is not None), default=None)


def upstream_executions(needed: Collection[UUID], parts: Parts) -> tuple[UUID, ...]:
    """The executions that completed a join."""
    return tuple(parts[upstream].execution for upstream in sorted(needed) if upstream in parts)


def _asked(target: Target, extra: Extra, lead: Lead, new_id: NewId, now: Instant) -> NewExecution:
    deadline = deadline_after(now, target.spec.within)
    return execution_of(target, extra, lead, deadline=deadline, new_id=new_id)


def start(wanted: Sequence[DependentStart], new_id: NewId, now: Instant, done: Consequences) -> Script[list[Join]]:
    """Make executions of dependents; the joins they belong to, as they stand now. A deleted job starts nothing."""
    if not wanted:
        return []
    found = yield from targets({one.dependent for one in wanted})
    alive = [
        one
        for one in wanted
        if one.dependent in found and found[one.dependent].state != "deleted"  # guard: dependent-not-deleted
    ]
    lead = yield from leads(found.values(), now)
    asked = [_asked(found[one.dependent], one.extra, lead, new_id, now) for one in alive]
    made = yield from _put(alive, asked, new_id, now, done)
    return [
        structs.replace(one.join, state="started", execution=id, deadline=None, wake_at=None)
        for one, id in zip(alive, made, strict=True)
        if one.join is not None
    ]


def _put(
    starts: Sequence[DependentStart], asked: Sequence[NewExecution], new_id: NewId, now: Instant, done: Consequences
) -> Script[list[UUID]]:
    placed, parcels = place((yield from in_their_lanes(asked, now)), {}, new_id, now)
    made = [receipts[0].execution_id for receipts in placed]
    told = dependency_fires.fired(((s.dependent, s.join, id) for s, id in zip(starts, made, strict=True)), now)
    lanes, wake_at = yield from put_parcels(parcels, now, [told])
    done.wake(wake_at)
    for lane, rank in lanes.items():
        done.queue_lane(lane, rank)
    done.parcels += [parcel for parcel, _ in parcels]
    return made


def leads(found: Iterable[Target], now: Instant) -> Script[Lead]:
    """How far ranks lie before their arrival, by the policies of these targets' queues."""
    found = list(found)
    return (yield from leads_of({target.queue for target in found}, {target.job for target in found}, now))


def leads_of(queues: Collection[int], jobs: Collection[UUID], now: Instant) -> Script[Lead]:
    """How executions of these jobs rank in these queues."""
    policies = yield from policies_of(queues)
    learned: dict[UUID, Micros] = {}
    if any(isinstance(inner(policy), ShortestPolicy) for policy in policies.values()):
        learned = yield from expected_of(jobs, now)
    return RankLeads(lambda queue: policies.get(queue, PRIORITY), lambda job: learned.get(job, 0))


def policies_of(queues: Collection[int]) -> Script[dict[int, Policy]]:
    """How queues order what stands in them."""
    rows = yield ForEach(POLICIES, (("queue", "int"),), [(queue,) for queue in sorted(queues)])
    return {id: _read_policy(policy) for id, policy in rows}


def release(joins: Sequence[Join], now: Instant, done: Consequences) -> Script[list[Join]]:
    """Let executions that wait go on; the joins as they stand now.

    One that somebody else holds just now is looked at again; one that waits no more has ended another way.
    """
    if not joins:
        return []
    taken = yield from take(joins)
    lead = yield from leads_of({row[4] for row in taken.values()}, {row[3] for row in taken.values()}, now)
    queued: list[Queued] = []
    later: list[Waiting] = []
    for id, row in sorted(taken.items()):
        slice = part(shelves.waiting(row), index_of(id), index_of(id) + 1)
        lane, due_at, priority, deadline, _ = row[len(shelves.WAITING) :]
        if due_at > now:
            later.append(structs.replace(slice, reason="delay", wake_at=due_at, gate=None))
            done.wake(due_at)
        else:
            rank = lead.rank(slice.queue, due_at, priority, deadline, slice.job)
            if slice.flags & KEYED:
                later.append(on_the_way(slice, rank, now))
                done.wake(now)
            else:
                queued.append(to_queue(slice, lane, rank, now))
    if queued:
        yield shelves.put_queued(queued)
        done.queue(queued)
    if later:
        yield shelves.put_waiting(later)
    return (yield from _released(joins, taken, now, done))


def _released(joins: Sequence[Join], taken: Collection[UUID], now: Instant, done: Consequences) -> Script[list[Join]]:
    gone = [join for join in joins if join.execution not in taken]
    held = yield from still_waiting(gone)
    again = now + AGAIN
    if held:
        done.look(again)
    return [
        structs.replace(join, wake_at=again)
        if join.execution in held
        else structs.replace(join, state="started" if join.execution in taken else "ended", wake_at=None)
        for join in joins
    ]


def take(joins: Sequence[Join]) -> Script[dict[UUID, Row]]:
    """Take the executions of joins off the shelf on which they wait, by id; their neighbours stay there."""
    rows = yield ForEach(WAITS, shelves.ITEM, _items(joins))
    slices: dict[tuple[UUID, int], tuple[Waiting, list[int]]] = {}
    for row in rows:
        slices.setdefault((row[0], row[1]), (shelves.waiting(row), []))[1].append(row[-1])
    if slices:
        yield shelves.take("waiting", [slice for slice, _ in slices.values()])
        rest = [
            part(slice, lo, hi)
            for slice, items in slices.values()
            for lo, hi in gaps(slice.lo, slice.hi, [(item, item + 1) for item in items])
        ]
        if rest:
            yield shelves.put_waiting(rest)
    return {execution_id(row[0], row[-1]): row for row in rows}


def still_waiting(joins: Sequence[Join]) -> Script[set[UUID]]:
    """Which of these joins' executions wait still, whoever holds them."""
    if not joins:
        return set()
    rows = yield ForEach(STILL, shelves.ITEM, _items(joins))
    return {execution_id(parcel, item) for parcel, item in rows}


def _items(joins: Sequence[Join]) -> list[tuple[UUID, int]]:
    return sorted({(parcel_of(j.execution), index_of(j.execution)) for j in joins if j.execution is not None})
