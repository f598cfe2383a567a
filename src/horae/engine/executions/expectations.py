"""Expectations: the worker time that an execution of a job takes, learned from ended executions.

They are kept in memory, and newer executions count more. For a job that this server has not run, they begin with the
statistics of all servers.
"""

from collections.abc import Iterable
from uuid import UUID

from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Micros
from horae.store.contract import Store
from horae.store.executions.state_changes import FinishedItems
from horae.store.fleet.expected_durations import LOOK_BACK, MINUTE, expected_since

UNKNOWN: Micros = SECOND  # the expected time of a job that never ran
INTERVAL = 30.0  # seconds between reads of the statistics of all servers
LATELY = 5  # minutes of statistics that each read covers
WEIGHT = 0.2  # the weight of the newest execution in the moving average
MOST = 100_000  # jobs with a known duration


class Expectations:
    """Expected worker times of jobs. As a service, it reads the statistics of the other servers."""

    name = "expectations"

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._known: dict[UUID, float] = {}
        self._own: set[UUID] = set()  # jobs with executions that ended on this server since the last read
        self._back = LOOK_BACK  # minutes of statistics that the next read covers
        self.alarm = Alarm()

    def of(self, job: UUID) -> Micros:
        """Return the expected time of an execution."""
        return int(self._known.get(job, UNKNOWN))

    def knows(self, job: UUID) -> bool:
        return job in self._known

    def learn(self, ended: Iterable[FinishedItems]) -> None:
        """Learn from ended executions. Cancelled and skipped ones are ignored."""
        for end in ended:
            if end.state not in ("success", "failed"):
                continue
            count = end.hi - end.lo
            mean, before = end.busy / count, self._known.get(end.job)
            weight = 1 - (1 - WEIGHT) ** min(count, 20)
            self._known[end.job] = mean if before is None else before + weight * (mean - before)
            self._own.add(end.job)

    async def step(self) -> Wait:
        """Read the expected times of jobs with no execution that ended on this server lately."""
        since = self._env.now() // MINUTE - self._back
        learned = await self._store.read(lambda: expected_since(since))
        self._back = LATELY
        if len(self._known) > MOST:
            self._known = {job: self._known[job] for job in self._own}
        self._known |= {job: float(mean) for job, mean in learned.items() if job not in self._own}
        self._own.clear()
        return INTERVAL
