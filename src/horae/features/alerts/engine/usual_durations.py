"""The usual durations of jobs: the 95th percentile of the durations in the last week, from the job's statistics."""

from uuid import UUID

from horae.env import Env, Micros
from horae.features.statistics.store.reads import of_jobs
from horae.model.base.duration import WEEK
from horae.store.contract import Store

SHARE = 0.95
KEPT = 300.0  # seconds until a duration is read again
MOST = 10_000  # jobs in the cache


class UsualDurations:
    """A cache of the usual durations of jobs. Rules about long executions and deadlines use it."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._known: dict[UUID, tuple[float, Micros | None]] = {}

    async def get(self, job: UUID) -> Micros | None:
        """Return the usual duration of a job, or None if no execution ended in the last week."""
        now = self._env.clock.monotonic()
        until, usual = self._known.get(job, (0.0, None))
        if until > now:
            return usual
        since = self._env.now() - WEEK
        tally = (await self._store.read(lambda: of_jobs([job], since)))[job]
        found = tally.durations.percentile(SHARE)
        usual = None if found is None else int(found)
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[job] = (now + KEPT, usual)
        return usual
