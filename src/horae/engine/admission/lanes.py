"""Facts about lanes that a server keeps in memory: which are occupied or full, what they need, and estimates."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.engine.base.hints import MANY, Hint, add_amounts
from horae.engine.executions.expectations import UNKNOWN
from horae.env import SECOND, Instant, Micros
from horae.model.admission.claim_plan import WorkerGroup
from horae.model.admission.limits import Limit, namespace_limit, queue_limit
from horae.model.admission.placement.placement import Cost, Requirements, read_needs
from horae.model.admission.placement.prefetch import goes_before
from horae.model.admission.policy import QUANTUM, SHORT_TIME
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.deal import WorkRequest
from horae.store.admission.lanes import Lane

_NOWHERE = (0, "")  # stands for the queue and share of a lane that this server does not know

LaneCallback = Callable[[int], object]
MOST_JOBS = 10_000  # remembered for each lane
NO_JOBS: frozenset[UUID] = frozenset()
NOT_SHORT = SHORT_TIME / QUANTUM  # microseconds: of executions this long, at most a quantum is granted at a time
SHORTEST = 0.005  # seconds: the shortest wait for a rate


class OccupiedLanes(dict[int, int]):
    """Maps a lane to its lowest rank, and calls back when a lane becomes occupied or empty."""

    def __init__(self, on_occupied: LaneCallback, on_emptied: LaneCallback) -> None:
        super().__init__()
        self._on_occupied, self._on_emptied = on_occupied, on_emptied

    def __setitem__(self, lane: int, rank: int) -> None:
        is_new = lane not in self
        super().__setitem__(lane, rank)
        if is_new:
            self._on_occupied(lane)

    def __delitem__(self, lane: int) -> None:
        super().__delitem__(lane)
        self._on_emptied(lane)

    def pop(self, lane: int, default: int | None = None) -> int:  # type: ignore[override]
        if lane not in self:
            return default  # type: ignore[return-value]
        rank = self[lane]
        del self[lane]
        return rank


def may_prefetch_short(
    short_lanes: Collection[int],
    allowed: frozenset[int],
    occupied: Mapping[int, int],
    lanes: Mapping[int, Lane],
    costs: Collection[int],
) -> bool:
    """Return whether a worker may prefetch from one of `short_lanes`, the lanes with executions of its short jobs.

    It may not if an execution in another of the `allowed` lanes ranks well before them. Ranks are compared only within
    a queue and a share. Lanes in `costs`, whose executions take more than a slot, are ignored, because their executions
    wait for more room than prefetching takes.
    """
    waiting: dict[tuple[int, str], int] = {}
    for lane, head in occupied.items():
        if lane in allowed and lane not in short_lanes and lane not in costs:
            line = _line(lane, lanes)
            waiting[line] = min(head, waiting.get(line, head))
    firsts = ((occupied[lane], waiting.get(_line(lane, lanes))) for lane in short_lanes)
    return any(first is None or not goes_before(first, head) for head, first in firsts)


def _line(lane: int, lanes: Mapping[int, Lane]) -> tuple[int, str]:
    """Return the queue and share within which a lane's ranks are compared."""
    known = lanes.get(lane)
    return (known.queue, known.share) if known else _NOWHERE


class LaneNeeds:
    """The requirements of all lanes: more than a slot of a worker, a spread over workers, or a temporary stay.

    A lane without needs is in `terms` only.
    """

    def __init__(self, occupied: Mapping[int, int]) -> None:
        """`occupied` is the directory's own mapping of occupied lanes to their lowest ranks."""
        self._occupied = occupied
        self.terms: dict[int, Requirements] = {}
        self.costs: dict[int, Cost] = {}  # lane -> cost of an execution; only lanes where it is more than a slot
        self.spread: dict[int, WorkerGroup] = {}  # lane -> the workers over which its executions must be spread
        self.reserved: Mapping[UUID, int] = {}  # session -> the lane for which it is reserved
        self._temporary: set[int] = set()  # lanes that executions leave after a while for a lane with fewer needs

    def reserve(self, reserved: Mapping[UUID, int]) -> None:
        """Set the sessions that are reserved for one lane each."""
        self.reserved = reserved

    def replace_lanes(self, lanes: Iterable[Lane], queues: Mapping[int, str]) -> None:
        """Replace all lanes; `queues` has the names of their queues."""
        self.terms, self.costs, self.spread, self._temporary = {}, {}, {}, set()
        for lane in lanes:
            self.add(lane, queues[lane.queue])

    def add(self, lane: Lane, queue: str) -> None:
        """Add a lane, or replace it."""
        terms = self.terms[lane.id] = read_needs(lane.needs)
        if terms.cost:
            self.costs[lane.id] = terms.cost
        if terms.spread:
            self.spread[lane.id] = WorkerGroup(queue, terms)
        if terms.is_temporary:
            self._temporary.add(lane.id)

    def affords(self, want: WorkRequest, lanes: frozenset[int]) -> bool:
        """Return whether a worker's request has room for an execution of one of these lanes."""
        if not self.costs:
            return True
        occupied = lanes.intersection(self._occupied)
        return any((cost := self.costs.get(lane)) is None or cost.times(want.free, want.room) > 0 for lane in occupied)

    def has_costly(self, lanes: frozenset[int]) -> bool:
        """Return whether one of these lanes is occupied and takes more than a slot for an execution."""
        return any(lane in lanes and lane in self._occupied for lane in self.costs)

    def plain_lanes(self, lanes: frozenset[int]) -> frozenset[int]:
        """Return those of the lanes whose executions take one slot of any worker, so that their order is free."""
        return lanes.difference(self.costs, self.spread) if self.costs or self.spread else lanes

    def has_temporary(self, lanes: Collection[int]) -> bool:
        """Return whether one of these lanes holds its executions only temporarily."""
        return bool(self._temporary) and not self._temporary.isdisjoint(lanes)

    def occupied_costly(self) -> list[int]:
        """Return the occupied lanes whose executions take more than a slot."""
        return [lane for lane in self.costs if lane in self._occupied]

    def occupied_temporary(self) -> list[int]:
        """Return the occupied lanes that hold their executions only temporarily."""
        return sorted(self._temporary.intersection(self._occupied))


class LaneEstimates:
    """Estimates of how many executions a lane holds, of which jobs, in slices of which size, and how long they take.

    They are learned from hints and claims, so that a claim takes about as much as it needs. Correctness does not
    depend on them. Estimates of queues are used for lanes from which nothing was claimed yet.
    """

    def __init__(self, expects: Callable[[UUID], Micros]) -> None:
        self._expects = expects  # expected time of an execution of a job
        self.amounts: dict[int, int] = {}  # executions that each lane holds; MANY when unknown
        self.jobs: dict[int, frozenset[UUID]] = {}  # jobs whose executions were granted from each lane
        self._sizes: dict[int, float] = {}  # executions in a slice of each lane
        self._queue_sizes: dict[int, float] = {}
        self._times: dict[int, float] = {}  # microseconds for an execution of each lane
        self._queue_times: dict[int, float] = {}

    def keep(self, lanes: Collection[int]) -> None:
        """Forget all lanes except these."""
        for known in (self.amounts, self.jobs, self._sizes, self._times):
            for lane in [lane for lane in known if lane not in lanes]:
                del known[lane]

    def learn_from_hint(self, hint: Hint) -> None:
        """Add the numbers of new executions that a hint announces."""
        add_amounts(self.amounts, hint)

    def learn_sizes(self, sizes: Mapping[int, float], lanes: Mapping[int, Lane]) -> None:
        """Learn the number of executions in a slice of each lane."""
        for lane, size in sizes.items():
            self._sizes[lane] = size = (self._sizes.get(lane, size) + size) / 2
            if lane in lanes:
                self._queue_sizes[lanes[lane].queue] = size

    def learn_from_grant(self, lane: int, slices: Sequence[RunningSlice]) -> None:
        """Learn the jobs and execution times of slices that were granted from a lane."""
        total = sum(running.hi - running.lo for running in slices)
        amount = self.amounts.get(lane, MANY)
        self.amounts[lane] = amount if amount == MANY else max(0, amount - total)
        taken = sum((running.hi - running.lo) * self._expects(running.job) for running in slices) / total
        self._times[lane] = 0.7 * self._times.get(lane, taken) + 0.3 * taken
        queue = slices[0].queue
        self._queue_times[queue] = (self._queue_times.get(queue, taken) + taken) / 2
        known, jobs = self.jobs.get(lane, NO_JOBS), {running.job for running in slices}
        if not jobs <= known:
            self.jobs[lane] = frozenset(jobs) if len(known) > MOST_JOBS else known | jobs

    def amount(self, lane: int) -> int:
        return self.amounts.get(lane) or MANY

    def size(self, lane: int, queue: int) -> float:
        """Return the number of executions in a slice of a lane."""
        return self._sizes.get(lane) or self._queue_sizes.get(queue, 1.0)

    def time(self, lane: int, queue: int | None) -> float:
        """Return the expected microseconds of an execution of a lane.

        Until something was claimed from the lane, return the time of its queue, but at least NOT_SHORT, so that the
        first grant is small.
        """
        jobs = self.jobs.get(lane, NO_JOBS)
        if len(jobs) == 1:
            return self._expects(*jobs)
        known = self._times.get(lane)
        if known is None:
            return UNKNOWN if queue is None else max(NOT_SHORT, self._queue_times.get(queue, UNKNOWN))
        return known


class FullLane(Struct, frozen=True):
    """A lane without room."""

    low: int  # its lowest rank
    limits: tuple[str, ...]
    opens_at: Instant | None  # when a rate allows the next start; None if no rate is the reason


class FullLanes:
    """The limits of lanes, and the lanes that have no room now. Claims skip them until room may have become free.

    A lane that is full by a rate is skipped until the rate allows the next start. Others are tried again once a second.
    """

    def __init__(self) -> None:
        self.limits: Mapping[str, Limit] = {}
        self.freed_count = 0  # how many times room may have become free
        self._full: dict[int, FullLane] = {}

    def set_limits(self, limits: Mapping[str, Limit]) -> None:
        """Set the limits of queues and namespaces. If they changed, no lane counts as full."""
        if limits != self.limits:
            self.limits = limits
            self._full.clear()

    @property
    def lanes(self) -> frozenset[int]:
        """The lanes that have no room now."""
        return frozenset(self._full)

    def limits_of(self, lane: Lane) -> tuple[str, ...]:
        """Return the limits that apply to a lane."""
        if not self.limits:
            return ()
        names = (namespace_limit(lane.namespace), queue_limit(lane.queue))
        return tuple(name for name in names if name in self.limits)

    def mark_full(self, lane: Lane, low: int, opens_at: Instant | None) -> None:
        """Record that a claim found no room for the executions of a lane; `low` is the lane's lowest rank.

        `opens_at` is the time at which a rate allows the next start; None if no rate is the reason.
        """
        self._full[lane.id] = FullLane(low, self.limits_of(lane), opens_at)

    def pop_freed(self, lanes: Iterable[Lane]) -> dict[int, int]:
        """Remove full lanes that share a limit with one of these lanes, as they may have room now.

        Return the removed lanes with their lowest ranks. Lanes that are full by a rate stay.
        """
        names = {name for lane in lanes for name in self.limits_of(lane)}
        if not names:
            return {}
        self.freed_count += 1
        found = {
            lane_id: full.low
            for lane_id, full in self._full.items()
            if full.opens_at is None and not names.isdisjoint(full.limits)
        }
        for lane_id in found:
            del self._full[lane_id]
        return found

    def forget(self, now: Instant, *, others: bool) -> None:
        """Remove the lanes whose rate allows a start now and, with `others`, those that are not full by a rate."""
        self._full = {
            lane: full
            for lane, full in self._full.items()
            if (full.opens_at > now if full.opens_at is not None else not others)
        }

    def wait(self, most: float, now: Instant) -> float:
        """Return the seconds until a rate allows the next start, at most `most`."""
        opens_at = min((full.opens_at for full in self._full.values() if full.opens_at is not None), default=None)
        return most if opens_at is None else min(most, max(SHORTEST, (opens_at - now) / SECOND))
