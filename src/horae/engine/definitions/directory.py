"""The directory: this server's copy of queues, lanes and jobs, so that the hot path reads nothing from the store.

Lanes with queued executions are known from hints and from a scan once a second. The submitting transaction itself
checks that its version of a job is current.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import structs

from horae.engine.admission.fair_shares import FairShares
from horae.engine.admission.lanes import NO_JOBS, FullLanes, LaneEstimates, LaneNeeds, OccupiedLanes, may_prefetch_short
from horae.engine.admission.preference_cache import PreferenceCache
from horae.engine.base.hints import MANY, Hint, Hints
from horae.engine.definitions.definition_cache import DefinitionCache
from horae.engine.definitions.job_cache import JobCache
from horae.engine.executions.expectations import Expectations
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Instant
from horae.errors import Conflict
from horae.model.admission.claim_plan import LaneState
from horae.model.admission.placement.placement import PLAIN, fits
from horae.model.admission.placement.preempt import is_in_front
from horae.model.admission.policy import PRIORITY, FairPolicy, Policy
from horae.model.admission.queue import Queue
from horae.model.admission.rank import RankLeads
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.session import Session
from horae.model.tenancy.secret_refs import SEALED, TAKES_SECRETS
from horae.store.admission.coarse import all_limits
from horae.store.admission.lanes import Lane, Tenant, revisions
from horae.store.contract import Store
from horae.store.definitions.jobs import StoredJob
from horae.store.executions.leaving.effects import Effects
from horae.store.triggers.delays import Delays

FEW = 64  # if there are more occupied lanes, their ranks are not compared before a claim
MOST_REACHES = 1_000  # cached sets of lanes that sessions may take from
NEEDS_KEY = frozenset({TAKES_SECRETS, SEALED})
SCAN = 1.0  # seconds between scans for lanes that no hint announced


class HintMarks(NamedTuple):
    """A state of the directory: the number of its last hint, and how often room was freed."""

    hints: int
    frees: int


class LocalDirectory:
    """Queues, lanes, occupied lanes, paused jobs, and caches of jobs and their definitions."""

    name = "directory"

    def __init__(self, env: Env, store: Store, hints: Hints, node: UUID | None = None) -> None:
        self._env, self._store, self._hints = env, store, hints
        self.alarm = Alarm()
        self.queues: dict[int, Queue] = {}
        self.lanes: dict[int, Lane] = {}
        self.namespaces: dict[int, Tenant] = {}
        self.paused: frozenset[UUID] = frozenset()
        self.keyless = False  # this server lacks a master key and grants no executions that need it
        self.has_sealed_jobs = False  # some job has sealed params and results
        self.held: Mapping[int, str] = {}  # held queues, with the end of their hold in words
        self._open_circuits: Mapping[UUID | tuple[UUID, str], str] = {}
        self.version = 0  # grows when lanes or holds change, so that the lanes of sessions are computed anew
        self._revisions = (0, 0, 0)  # the revisions of queues and namespaces at the last load
        self.expectations = Expectations(env, store)
        self.estimates = LaneEstimates(self.expectations.of)
        self.fair = FairShares(env, store, self.expectations, node)
        self._occupied = OccupiedLanes(self.fair.lane_occupied, self.fair.lane_emptied)
        self.lane_needs = LaneNeeds(self._occupied)
        self._front: set[int] = set()  # lanes with executions for which others were preempted
        self._hint = 0  # the number of the last hint
        self._hinted: dict[int, int] = {}  # lane -> the number of the last hint about it
        self._families: dict[tuple[int, frozenset[str]], list[int]] = {}  # lanes that differ only in their share
        self._by_share: dict[tuple[int, frozenset[str], str], int] = {}
        self._reaches: dict[tuple[int, frozenset[tuple[int, frozenset[str]]]], frozenset[int]] = {}
        self.jobs = JobCache(store, self._load_lane)
        self.definitions = DefinitionCache(store)
        self.preferences = PreferenceCache()
        self.lead = RankLeads(self.policy, self.expectations.of)
        self.rank = self.lead.rank
        self.full = FullLanes()
        self._retries_at = 0.0  # when the lanes that are not full by a rate are tried again
        self._next_step: Instant = 0
        hints.listen(self._on_hint)

    async def step(self) -> Wait:
        """Scan for occupied lanes that no hint announced, for paused jobs and for changed queues."""
        before = self._hint
        await self.load_limits()
        occupied = await self._store.occupied()
        if not occupied.keys() <= self.lanes.keys():
            await self.load()
        self._forget_full()
        full = self.full.lanes
        for lane, rank in occupied.items():
            if lane in full:
                continue
            hinted = self._is_hinted(lane, before)  # the scan may have missed executions that entered since
            self._occupied[lane] = min(rank, self._occupied.get(lane, rank)) if hinted else rank
        for lane in [k for k in self._occupied if k not in occupied and not self._is_hinted(k, before)]:
            del self._occupied[lane]
        self.paused = await self._store.paused_jobs()
        if await self._store.read(revisions) != self._revisions:
            await self.load()
        full = self.full.lanes
        if open_lanes := {lane: rank for lane, rank in occupied.items() if lane not in full}:
            self._hints.send_locally(Hint(lanes=open_lanes))
        wait = self.full.wait(SCAN, self._env.now())
        self._next_step = self._env.now() + int(wait * SECOND)
        return wait

    def _forget_full(self) -> None:
        now = self._env.clock.monotonic()
        others = now >= self._retries_at
        if others:
            self._retries_at = now + SCAN
        self.full.forget(self._env.now(), others=others)

    async def load_limits(self) -> None:
        """Read the limits of queues and namespaces."""
        self.full.set_limits(await self._store.read(all_limits))

    async def load(self) -> None:
        """Read all queues and lanes with their namespaces."""
        before = self._hint
        directory = await self._store.directory()
        await self.load_limits()
        self.queues = {queue.id: queue for queue in directory.queues}
        self.lanes = {lane.id: lane for lane in directory.lanes}
        self.namespaces = {tenant.id: tenant for tenant in directory.namespaces}
        self.lane_needs.replace_lanes(directory.lanes, {queue.id: queue.name for queue in directory.queues})
        self.estimates.keep(self.lanes)
        self._hinted = {lane: n for lane, n in self._hinted.items() if lane in self.lanes or n > before}
        self._families = {}
        self._by_share = {(lane.queue, lane.needs, lane.share): lane.id for lane in directory.lanes}
        for lane in directory.lanes:
            self._families.setdefault((lane.queue, lane.needs), []).append(lane.id)
        self.has_sealed_jobs = any(SEALED in needs for _, needs in self._families)
        self.fair.replace_lanes(self.queues, self.lanes, self.lane_needs.costs)
        self.preferences.replace_queues(directory.queues)
        changed = max((tenant.updated_at for tenant in directory.namespaces), default=0)
        self._revisions = (len(self.queues), sum(queue.revision for queue in self.queues.values()), changed)
        self.version += 1

    async def _load_lane(self, stored: StoredJob) -> None:
        if stored.queue not in self.queues or stored.lane not in self.lanes:
            await self.load()

    def _on_hint(self, hint: Hint) -> None:
        self.estimates.learn_from_hint(hint)
        self._hint += 1
        for lane, rank in hint.lanes.items():
            self._occupied[lane] = min(rank, self._occupied.get(lane, rank))
            self._hinted[lane] = self._hint
            if is_in_front(rank):
                self._front.add(lane)
        for lane, rank in self.full.pop_freed(self.lanes[lane] for lane in hint.lanes if lane in self.lanes).items():
            self._occupied[lane] = min(rank, self._occupied.get(lane, rank))
        for lane in hint.lanes:
            if lane not in self.lanes:
                self.alarm.ring()
        for job in hint.jobs:
            self._forget(job)
        if hint.queues:
            self.alarm.ring()

    def _forget(self, job: UUID) -> None:
        self.jobs.forget(job)
        self.alarm.ring()

    def set_held(self, queues: Mapping[int, str]) -> None:
        """Set the held queues. If a hold ended, scan for executions of its queue at once."""
        if queues == self.held:
            return
        released = self.held.keys() - queues.keys()
        self.held = queues
        self.version += 1
        if released:
            self.alarm.ring()

    def set_keyless(self, keyless: bool) -> None:
        """Set whether executions that need the master key are withheld."""
        if keyless != self.keyless:
            self.keyless = keyless
            self.version += 1
            self.alarm.ring()

    def set_open_circuits(self, open_circuits: Mapping[UUID | tuple[UUID, str], str]) -> None:
        """Set the jobs, and keys of jobs, with an open circuit, each with the circuit's end in words."""
        self._open_circuits = open_circuits

    @property
    def delays(self) -> Delays:
        """Held queues, and jobs and keys with an open circuit, each with the end of the delay in words."""
        return dict([*self.held.items(), *self._open_circuits.items()])

    def lanes_for(self, session: Session) -> frozenset[int]:
        """Return the lanes that a session may take from: of its namespace and queues, not held, with needs it meets.

        A session that is reserved for a lane gets only that lane. A server without the master key leaves out lanes that
        need it.
        """
        if session.id in self.lane_needs.reserved:  # gate: reserved
            return frozenset({self.lane_needs.reserved[session.id]})
        families = frozenset(
            family
            for family, (first, *_) in self._families.items()
            if (queue := self.queues[family[0]]).namespace == session.namespace  # gate: none
            and queue.name in session.queues  # gate: no-worker
            and queue.id not in self.held  # gate: held, queue-paused
            and not (self.keyless and NEEDS_KEY & family[1])  # gate: no-key
            and fits(self.lane_needs.terms[first], session.capabilities)  # gate: no-worker, preferred
        )
        known = self._reaches.get((self.version, families))
        if known is None:  # gate: none
            if len(self._reaches) > MOST_REACHES:  # gate: none
                self._reaches.clear()
            known = frozenset(lane for family in families for lane in self._families[family])
            self._reaches[self.version, families] = known
        return known

    def weight(self, namespace: int) -> float:
        """Return the weight of a namespace in the shares of server resources."""
        return known.weight if (known := self.namespaces.get(namespace)) is not None else 1.0

    def unknown_lanes(self) -> list[int]:
        """Return occupied lanes that the directory lacks: new ones, or ones deleted while an execution entered them."""
        return [lane for lane in self._occupied if lane not in self.lanes]

    def lane_of_share(self, base: int, share: str) -> int | None:
        """Return the lane with the queue and needs of `base` and this share, if this server knows it."""
        lane = self.lanes.get(base)
        return None if lane is None else self._by_share.get((lane.queue, lane.needs, share))

    def add_share(self, base: int, share: str, lane_id: int) -> None:
        """Add a new lane that differs from `base` only in its share."""
        base_lane = self.lanes.get(base)
        if base_lane is None or lane_id in self.lanes:
            return
        lane = structs.replace(base_lane, id=lane_id, share=share)
        self.lanes[lane_id] = lane
        self.lane_needs.add(lane, self.queues[lane.queue].name)
        self._families[lane.queue, lane.needs].append(lane_id)
        self._by_share[lane.queue, lane.needs, share] = lane_id
        self.version += 1

    @property
    def preempting_lanes(self) -> frozenset[int]:
        """The occupied lanes of queues that may preempt interruptible executions."""
        queues = {queue.id for queue in self.queues.values() if queue.spec.preempts}
        if not queues:
            return frozenset()
        return frozenset(lane for lane in self._occupied if lane in self.lanes and self.lanes[lane].queue in queues)

    def is_occupied(self, lanes: frozenset[int], jobs: Collection[UUID] | None = None) -> bool:
        """Return whether any of these lanes has a queued execution.

        With `jobs`, count only lanes with executions of these jobs, and only if nothing ahead of them waits for a slot.
        """
        if jobs is None:
            return not lanes.isdisjoint(self._occupied)
        if not jobs:
            return False
        held = (
            lane
            for lane in self._occupied
            if lane in lanes and not self.estimates.jobs.get(lane, NO_JOBS).isdisjoint(jobs)
        )
        if len(self._occupied) > FEW:  # too many to compare here: the claim decides
            return any(True for _ in held)
        theirs = set(held)
        return bool(theirs) and may_prefetch_short(theirs, lanes, self._occupied, self.lanes, self.lane_needs.costs)

    def reserve(self, reserved: Mapping[UUID, int]) -> None:
        """Set the sessions that are reserved for one lane each."""
        if reserved != self.lane_needs.reserved:
            self.lane_needs.reserve(reserved)
            self.version += 1
            self.alarm.ring()

    def expected_amount(self) -> int:
        """Estimate the number of executions in the occupied lanes; MANY when it is unknown."""
        heads = [lane for lane in self._occupied if not self._is_held(lane)] if self.held else self._occupied
        return min(MANY, sum(map(self.estimates.amount, heads)))

    def _is_held(self, lane: int) -> bool:
        return lane in self.lanes and self.lanes[lane].queue in self.held

    def lane_states(self, room: int = MANY) -> list[LaneState]:
        """Return the occupied lanes by rank; of fair queues, only those next for a claim of `room` executions."""
        if self.preferences:
            self.preferences.note_waiting({self.lanes[lane].queue for lane in self._occupied if lane in self.lanes})
        if not self.fair:
            return self._views(self._occupied)
        shared = self.fair.next_lanes(room, self.estimates.amounts, self._expects)
        if self._front:  # slots were freed for the executions of these lanes
            self._front = {lane for lane in self._front if is_in_front(self._occupied.get(lane, 0))}
            shared |= self._front - self.fair.plain
        return [*self._views(self.fair.plain), *map(self.fair.with_share, self._views(shared))]

    def _views(self, of: Iterable[int]) -> list[LaneState]:
        ordered = sorted((self._occupied[lane], lane) for lane in of)
        return [self._view(lane, low) for low, lane in ordered if lane in self.lanes]

    def _view(self, lane: int, low: int) -> LaneState:
        lane_needs, queue = self.lane_needs, self.lanes[lane].queue
        estimates = self.estimates
        return LaneState(
            lane=lane, low=low, mean=estimates.size(lane, queue), jobs=estimates.jobs.get(lane, NO_JOBS),
            cost=lane_needs.costs.get(lane, PLAIN), spread_over=lane_needs.spread.get(lane),
            limits=self._limits_of(lane), queue=queue, amount=estimates.amount(lane),
            expected=estimates.time(lane, queue),
        )  # fmt: skip

    def states_of_new(self, lanes: Mapping[int, int]) -> list[LaneState]:
        """Return the states of lanes that executions enter, given their lowest ranks, without lanes of fair queues."""
        known = {lane: low for lane, low in lanes.items() if lane in self.lanes}
        plain = {
            lane: low for lane, low in known.items() if not isinstance(self.policy(self.lanes[lane].queue), FairPolicy)
        }
        return [self._view(lane, low) for lane, low in plain.items()]

    def _expects(self, lane: int) -> float:
        return self.estimates.time(lane, self.lanes[lane].queue if lane in self.lanes else None)

    def marks(self) -> HintMarks:
        """Return what is known now. After a claim, pass it as `before` to keep later changes."""
        return HintMarks(self._hint, self.full.freed_count)

    def _is_hinted(self, lane: int, since: int) -> bool:
        """Return whether a hint after the one with the number `since` was about a lane."""
        return self._hinted.get(lane, 0) > since

    def _limits_of(self, lane: int) -> tuple[str, ...]:
        return self.full.limits_of(self.lanes[lane]) if self.full.limits and lane in self.lanes else ()

    def mark_full(self, lanes: Mapping[int, Instant | None], before: HintMarks) -> None:
        """Mark lanes as full, with the time when a rate has room, unless room was freed since `before` (the claim)."""
        if before.frees != self.full.freed_count:
            return
        for lane, opens_at in lanes.items():
            if lane in self._occupied and lane in self.lanes:
                self.full.mark_full(self.lanes[lane], self._occupied.pop(lane), opens_at)
        if any(opens_at is not None and opens_at < self._next_step for opens_at in lanes.values()):
            self.alarm.ring()

    def learn_from_claim(self, lanes: dict[int, int | None], before: HintMarks) -> dict[int, int]:
        """Update lanes after a claim, except those with a hint since `before`; return lanes that still have executions.

        `lanes` has the lowest rank that the claim left in each lane, or None for an emptied lane.
        """
        left = {}
        for lane, low in lanes.items():
            if low is not None:
                left[lane] = low
                self.estimates.amounts[lane] = self.estimates.amount(lane)
                if not self._is_hinted(lane, before.hints):
                    self._occupied[lane] = low
            elif not self._is_hinted(lane, before.hints):
                self._occupied.pop(lane, None)
                self.estimates.amounts.pop(lane, None)
        return left

    def learn_from_grant(self, lane: int, slices: Sequence[RunningSlice]) -> None:
        """Update estimates and fair shares with the slices that a claim took from a lane."""
        self.estimates.learn_from_grant(lane, slices)
        if self.fair:
            self.fair.charge(lane, slices)

    def learn_from_ends(self, effects: Effects) -> None:
        """Update expectations and fair shares after executions ended."""
        self.expectations.learn(effects.ended)
        if self.fair:
            self.fair.correct_charges(effects)

    def check_accepts(self, queue: int) -> None:
        """Refuse submissions to a queue that is being drained. Raises Conflict."""
        known = self.queues.get(queue)
        if known is not None and known.state == "draining":
            raise Conflict(
                f'The queue "{known.name}" is being drained and accepts nothing new.',
                f"`horae queues resume {known.name}` opens it; or submit a job of another queue.",
            )

    def policy(self, queue: int) -> Policy:
        return known.policy if (known := self.queues.get(queue)) else PRIORITY

    def forget(self, jobs: Iterable[UUID]) -> None:
        """Drop jobs from the cache, so that they are read again, and scan at once."""
        for job in jobs:
            self._forget(job)
