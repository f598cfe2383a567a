"""Fair shares: how much worker time each share of a fair queue has received, through this and the other servers.

A claim charges a share with the expected time of the claimed executions. When they end, the charge is corrected to
their real time. (A policy may charge by the number of executions instead.) The sums are kept in memory. Once a second,
a server writes its own charges and reads those of the other servers. So fairness may be off by a second's work, but
nothing else depends on these sums.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.executions.expectations import Expectations
from horae.engine.service import Alarm, Wait
from horae.env import Env, Instant
from horae.model.admission.claim_plan import LaneState
from horae.model.admission.placement.placement import PLAIN, Cost
from horae.model.admission.policy import QUANTUM, FairPolicy, quantum, slots_reserved
from horae.model.admission.queue import Queue
from horae.model.admission.virtual_times import VirtualTimes
from horae.model.executions.slice import RunningSlice
from horae.store.admission import shares as moves
from horae.store.admission.lanes import Lane
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects

FLUSH = 1.0  # seconds between exchanges of charges with the other servers
FEW = 32  # a claim may take from all occupied lanes of a queue with the same needs if there are no more than this
EXECUTION = 1_000_000.0  # the charge of an execution in queues whose policy charges by the number of executions
QUIET = 60.0  # seconds between steps while no queue is fair


NeedsOfQueue = tuple[int, frozenset[str]]  # queue and needs
Expects = Callable[[int], float]  # lane -> expected microseconds of an execution


class _Outstanding(Struct):
    """Executions of one job granted from one lane that have not ended, and the sum charged for them."""

    count: int = 0
    charged: float = 0.0


class FairShares:
    """Virtual times of the shares of fair queues. As a service, it exchanges charges with the other servers."""

    name = "fair-shares"

    def __init__(self, env: Env, store: Store, expectations: Expectations, node: UUID | None) -> None:
        self._env, self._store, self._expectations = env, store, expectations
        self._node = node  # the owner of the rows that this server writes
        self.alarm = Alarm()
        self._queues: Mapping[int, Queue] = {}
        self._lanes: Mapping[int, Lane] = {}
        self._costs: Mapping[int, Cost] = {}  # lane -> cost of an execution; only lanes where it is more than a slot
        self._shares: dict[int, VirtualTimes[str]] = {}
        self._occupied: set[int] = set()  # occupied lanes of all queues
        self._occupied_by_share: dict[moves.Share, set[int]] = {}  # lanes of fair queues
        # Occupied lanes of fair queues. A worker may take from all lanes of a queue with the same needs, or from none.
        self._occupied_by_needs: dict[NeedsOfQueue, set[int]] = {}
        self.plain: set[int] = set()  # occupied lanes of queues that are not fair
        self._outstanding: dict[tuple[int, UUID], _Outstanding] = {}
        self._charged: dict[moves.Share, float] = {}  # the charges that this server made since it started
        self._unsent: set[moves.Share] = set()
        self._received: dict[tuple[int, str, UUID], int] = {}
        # At the first exchange, the other servers' sums are only stored, because older charges must not count here.
        self._has_received = False
        self._forget_at: Instant = 0
        self._since = 0  # other servers' rows that are older than this instant were read
        # Slots in use, only of shares with a reserve: the last count, and the changes since.
        self._in_use: dict[moves.Share, int] = {}
        self._capacity: dict[int, int] = {}  # queue -> slots of the workers that serve it
        self._used: set[int] = set()  # lanes from which slices were granted since `step` last recorded it

    def replace_lanes(self, queues: Mapping[int, Queue], lanes: Mapping[int, Lane], costs: Mapping[int, Cost]) -> None:
        """Replace the queues and lanes; lanes that are added later may be added to these mappings."""
        fair = {queue_id: queue for queue_id, queue in queues.items() if isinstance(queue.policy, FairPolicy)}
        self._queues, self._lanes, self._costs = fair, lanes, costs
        self._policies = {
            queue_id: queue.policy for queue_id, queue in fair.items() if isinstance(queue.policy, FairPolicy)
        }
        self._shares = {queue_id: self._shares.get(queue_id) or VirtualTimes() for queue_id in fair}
        self._outstanding = {key: out for key, out in self._outstanding.items() if key[0] in lanes}
        if fair:
            self.alarm.ring()
        self._rebuild()

    def _rebuild(self) -> None:
        occupied, self._occupied = self._occupied, set()
        self._occupied_by_share, self._occupied_by_needs, self.plain = {}, {}, set()
        for lane in occupied:
            self.lane_occupied(lane)
        for queue, shares in self._shares.items():
            shares.set_busy([share for own, share in self._occupied_by_share if own == queue])

    def lane_occupied(self, lane: int) -> None:
        """Record that a lane is occupied now."""
        self._occupied.add(lane)
        known = self._lanes.get(lane)
        if known is None or known.queue not in self._queues:
            self.plain.add(lane)
            return
        self._occupied_by_share.setdefault((known.queue, known.share), set()).add(lane)
        self._occupied_by_needs.setdefault((known.queue, known.needs), set()).add(lane)
        self._shares[known.queue].mark_busy(known.share)

    def lane_emptied(self, lane: int) -> None:
        """Record that a lane is empty now."""
        self._occupied.discard(lane)
        self.plain.discard(lane)
        known = self._lanes.get(lane)
        if known is None or known.queue not in self._queues:
            return
        of_share = self._occupied_by_share.get((known.queue, known.share), set())
        of_share.discard(lane)
        self._occupied_by_needs.get((known.queue, known.needs), set()).discard(lane)
        if not of_share:
            self._occupied_by_share.pop((known.queue, known.share), None)
            self._shares[known.queue].mark_idle(known.share)

    def __bool__(self) -> bool:
        """Return whether any queue is fair."""
        return bool(self._queues)

    def policy_of(self, lane: int) -> FairPolicy | None:
        """Return the policy of a lane's fair queue; None for other lanes."""
        known = self._lanes.get(lane)
        return None if known is None else self._policies.get(known.queue)

    # Before a claim

    def next_lanes(self, room: int, amounts: Mapping[int, int], expects: Expects) -> set[int]:
        """Return the lanes of fair queues from which a claim for `room` executions may take.

        For each set of needs, lanes are chosen in the order of their shares, until a quantum from each of them would
        fill the room. So every worker finds the lanes that are next for it, and the claim reads no other lanes. Small
        sets of lanes, and the lanes of shares with a reserve, are chosen as a whole.
        """
        chosen: set[int] = set()
        for queue in self._shares:
            for share in self._policies[queue].reserve:
                chosen |= self._occupied_by_share.get((queue, share), set())
            large: dict[NeedsOfQueue, int] = {}
            for family, lanes in self._occupied_by_needs.items():
                if family[0] == queue and len(lanes) > FEW:
                    large[family] = room + QUANTUM
                elif family[0] == queue:
                    chosen |= lanes
            if large:
                chosen |= self._fill(queue, large, amounts, expects)
        return chosen

    def _fill(
        self, queue: int, large: dict[NeedsOfQueue, int], amounts: Mapping[int, int], expects: Expects
    ) -> set[int]:
        """Return lanes in the order of their shares, until each set of needs has as many executions as `large` says."""
        chosen: set[int] = set()
        for share in self._shares[queue].in_order():
            for lane in self._occupied_by_share.get((queue, share), ()):
                family = (queue, self._lanes[lane].needs)
                wanted = large.get(family)
                if wanted is None:
                    continue
                chosen.add(lane)
                taken = quantum(expects(lane))
                large[family] = wanted - min(taken, amounts.get(lane, taken))
                if large[family] <= 0:
                    del large[family]
            if not large:
                break
        return chosen

    def with_share(self, view: LaneState) -> LaneState:
        """Return a lane's state completed with its share and the share's virtual time."""
        share, policy, shares = self._lanes[view.lane].share, self._policies[view.queue], self._shares[view.queue]
        cost = EXECUTION if policy.charge == "executions" else view.expected * view.cost.slots
        return structs.replace(
            view, share=share, virtual=shares.virtual(share), last_grant=shares.last_grant(share),
            price=cost / policy.weight(share), owed=self._unfilled_reserve(view.queue, share, policy),
        )  # fmt: skip

    def _unfilled_reserve(self, queue: int, share: str, policy: FairPolicy) -> int:
        reserve = policy.reserve.get(share)
        if reserve is None:
            return 0
        return max(0, slots_reserved(reserve, self._capacity.get(queue, 0)) - self._in_use.get((queue, share), 0))

    # After a claim, and after a report

    def charge(self, lane: int, slices: Sequence[RunningSlice]) -> None:
        """Charge a lane's share with the expected time of slices that were claimed from it."""
        policy = self.policy_of(lane)
        if policy is None:
            return
        key, total = self._key(lane), 0.0
        for running in slices:
            count = running.hi - running.lo
            charged = count * self._cost(policy, lane, running.job)
            out = self._outstanding.setdefault((lane, running.job), _Outstanding())
            out.count, out.charged, total = out.count + count, out.charged + charged, total + charged
            self._use(policy, lane, count)
        self._shares[key[0]].charge(key[1], total / policy.weight(key[1]))
        self._record(key, total / policy.weight(key[1]))
        self._used.add(lane)

    def correct_charges(self, effects: Effects) -> None:
        """Correct the charges of executions that ended or came back unstarted."""
        for ended in effects.ended:
            policy = self.policy_of(ended.lane)
            if policy is not None:
                count = ended.hi - ended.lo
                actual = count * EXECUTION if policy.charge == "executions" else ended.busy * self._slots(ended.lane)
                self._correct(policy, ended.lane, ended.job, count, actual)
        for returned in effects.returned:
            policy = self.policy_of(returned.lane)
            if policy is not None:
                self._correct(policy, returned.lane, returned.job, returned.hi - returned.lo, 0.0)

    def _correct(self, policy: FairPolicy, lane: int, job: UUID, count: int, actual: float) -> None:
        key, out = self._key(lane), self._outstanding.get((lane, job))
        charged = count * self._cost(policy, lane, job)
        if out is not None:  # this server claimed it, as it did most executions that are reported to this server
            charged = out.charged * min(1.0, count / out.count)
            out.count, out.charged = out.count - count, out.charged - charged
            if out.count <= 0:
                del self._outstanding[lane, job]
        amount = (actual - charged) / policy.weight(key[1])
        self._use(policy, lane, -count)
        self._shares[key[0]].correct(key[1], amount)
        self._record(key, amount)

    def _use(self, policy: FairPolicy, lane: int, count: int) -> None:
        """Record that so many executions of a lane have started, or ended if negative."""
        key = self._key(lane)
        if key[1] in policy.reserve:
            self._in_use[key] = max(0, self._in_use.get(key, 0) + count * self._slots(lane))

    def _cost(self, policy: FairPolicy, lane: int, job: UUID) -> float:
        if policy.charge == "executions":
            return EXECUTION
        return float(self._expectations.of(job) * self._slots(lane))

    def _slots(self, lane: int) -> int:
        """Return the slots that an execution of a lane takes."""
        return self._costs.get(lane, PLAIN).slots

    def _key(self, lane: int) -> moves.Share:
        known = self._lanes[lane]
        return known.queue, known.share

    def _record(self, key: moves.Share, amount: float) -> None:
        self._charged[key] = self._charged.get(key, 0.0) + amount
        self._unsent.add(key)

    # The other servers

    async def step(self) -> Wait:
        """Write the charges of this server, and add those of the other servers to the shares."""
        if not self._queues:
            return QUIET
        if self._store.database.is_shared and self._node is not None:
            await self._exchange_charges(self._node)
        reserving = [queue_id for queue_id, policy in self._policies.items() if policy.reserve]
        if reserving:
            await self._count(reserving)
        if self._used:
            used, self._used, now = self._used, set(), self._env.now()
            try:
                await self._store.write(lambda: moves.touch(used, now))
            except BaseException:
                self._used |= used
                raise
        return FLUSH

    async def _exchange_charges(self, node: UUID) -> None:
        unwritten, self._unsent, now = self._unsent, set(), self._env.now()
        rows = [(*key, int(self._charged[key])) for key in sorted(unwritten)]
        since = self._since
        try:
            others = await self._store.write(lambda: moves.exchange_charges(node, rows, since, now))
        except BaseException:
            self._unsent |= unwritten
            raise
        for queue, share, server, charged, at in others:
            self._since = max(self._since, at - moves.LATE)
            self._receive(queue, share, server, charged)
        self._has_received = True
        if now >= self._forget_at:
            self._forget_at = now + moves.KEPT
            await self._store.write(lambda: moves.forget_charges(now - moves.KEPT))

    def _receive(self, queue: int, share: str, server: UUID, charged: int) -> None:
        """Add the growth of another server's sum to a share."""
        before = self._received.get((queue, share, server), 0 if self._has_received else charged)
        self._received[queue, share, server] = charged
        if queue in self._shares and charged != before:
            self._shares[queue].correct(share, float(charged - before))

    async def _count(self, queues: Iterable[int]) -> None:
        """Count the slots that each share uses, and those of each queue, to know which reserves are free."""
        names = {queue_id: (self._queues[queue_id].namespace, self._queues[queue_id].name) for queue_id in queues}
        counted = await self._store.read(lambda: moves.queue_use(names))
        self._in_use, self._capacity = {}, counted.slots
        for lane, count in counted.running.items():
            if (policy := self.policy_of(lane)) is not None:
                self._use(policy, lane, count)
