"""Estimates of lanes: how many executions a lane holds, of which jobs, in slices of which size, and how long they take.

The estimates are learned from hints and claims, so that a claim takes about as much as it needs. Correctness does not
depend on them.
"""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from horae.engine.base.hints import MANY, Hint, add_amounts
from horae.engine.executions.expectations import UNKNOWN
from horae.env import Micros
from horae.model.admission.policy import QUANTUM, SHORT_TIME
from horae.model.executions.slice import RunningSlice
from horae.store.admission.lanes import Lane

MOST_JOBS = 10_000  # remembered for each lane
NO_JOBS: frozenset[UUID] = frozenset()
NOT_SHORT = SHORT_TIME / QUANTUM  # microseconds: at most a quantum of such executions is granted at a time


class LaneEstimates:
    """Estimates of lanes, and of queues; the latter are used for lanes from which nothing was claimed yet."""

    def __init__(self, expects: Callable[[UUID], Micros]) -> None:
        self._expects = expects  # expected time of an execution of a job
        self.amounts: dict[int, int] = {}  # executions that each lane holds; MANY when unknown
        self.jobs: dict[int, frozenset[UUID]] = {}  # jobs whose executions were granted from each lane
        self._sizes: dict[int, float] = {}  # executions in a slice of each lane
        self._queue_sizes: dict[int, float] = {}
        self._times: dict[int, float] = {}  # microseconds for an execution of each lane
        self._queue_times: dict[int, float] = {}

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
