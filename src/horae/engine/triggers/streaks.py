"""`pauseAfter`: a job that fails several times in a row stops firing until a user resumes it."""

from collections.abc import Collection
from uuid import UUID

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env
from horae.model.base.event import ChangeEvent
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects
from horae.store.triggers import streaks

INTERVAL = 30.0  # seconds between checks for failures that this server did not see
MINUTE = 60_000_000
BACK = 3  # minutes of failures that such a check covers
log = structlog.get_logger("horae.engine")


class Streaks:
    """Checks jobs after a failure that this server saw, and periodically all jobs that failed lately."""

    name = "streaks"

    def __init__(self, env: Env, store: Store, hints: Hints, topics: Topics) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._failed: set[UUID] = set()  # jobs with failures since the last check
        self._check_at = 0.0
        self.paused = 0
        self.alarm = Alarm()
        topics.settled.subscribe(self.name, self._settled)
        topics.failed.subscribe(self.name, self._note)

    def _settled(self, effects: Effects) -> None:
        self._note({ended.job for ended in effects.ended if ended.state == "failed"})

    def _note(self, failed: Collection[UUID]) -> None:
        if failed:
            self._failed.update(failed)
            self.alarm.ring()

    async def step(self) -> Wait:
        """Check each failed job once. Jobs that could not be checked are checked in the next step."""
        failed, self._failed = self._failed, set()
        try:
            if self._env.clock.monotonic() >= self._check_at:
                since = self._env.now() // MINUTE - BACK
                failed |= await self._store.read(lambda: streaks.failed_lately(since))
                self._check_at = self._env.clock.monotonic() + INTERVAL
            for job in sorted(failed):
                await self._check(job)
                failed.remove(job)
        finally:
            self._failed |= failed
        return INTERVAL

    async def _check(self, job: UUID) -> None:
        if not await self._store.read(lambda: streaks.is_watched(job)):
            return
        done = await self._store.change(lambda now: streaks.pause_if_failing(job, now))
        if done is None:
            return
        namespace, pause = done
        self.paused += 1
        log.warning("triggers paused after failures", job=str(job), failures=pause.failures, triggers=pause.triggers)
        event = ChangeEvent("job", job, "auto-paused", namespace, self._env.now())
        self._hints.send(Hint(jobs=[job], events=[event]))
