"""Expectations: how long an execution of a job takes a worker, learned from those that ended.

Kept in memory, newer ones counting more. The statistics of all servers are where a server that has just started, or has
seen none of a job itself, begins.
"""

from collections.abc import Iterable
from uuid import UUID

from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Micros
from horae.store.contract import Store
from horae.store.executions.state_changes import FinishedItems
from horae.store.fleet.expected_durations import LOOK_BACK, MINUTE, expected_since

UNKNOWN: Micros = SECOND  # what a job is taken for that never ran
LOOK = 30.0  # seconds between looks at what other servers learned
LATELY = 5  # minutes of theirs that count
WEIGHT = 0.2  # of the newest report
MOST = 100_000  # jobs


class Expectations:
    """The expected worker time of jobs. A service: its step learns from the other servers."""

    name = "expectations"

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._known: dict[UUID, float] = {}
        self._own: set[UUID] = set()  # of which this server saw some since its last look
        self._back = LOOK_BACK
        self.alarm = Alarm()

    def of(self, job: UUID) -> Micros:
        """What an execution is expected to take."""
        return int(self._known.get(job, UNKNOWN))

    def knows(self, job: UUID) -> bool:
        return job in self._known

    def learn(self, ended: Iterable[FinishedItems]) -> None:
        """Executions have ended; those that were cancelled or skipped tell nothing."""
        for one in ended:
            if one.state not in ("success", "failed"):
                continue
            count = one.hi - one.lo
            mean, before = one.busy / count, self._known.get(one.job)
            weight = 1 - (1 - WEIGHT) ** min(count, 20)
            self._known[one.job] = mean if before is None else before + weight * (mean - before)
            self._own.add(one.job)

    async def step(self) -> Wait:
        """Take over what the others learned of jobs that did not end here."""
        since = self._env.now() // MINUTE - self._back
        learned = await self._store.read(lambda: expected_since(since))
        self._back = LATELY
        if len(self._known) > MOST:
            self._known = {job: self._known[job] for job in self._own}
        self._known |= {job: float(mean) for job, mean in learned.items() if job not in self._own}
        self._own.clear()
        return LOOK
