"""`pauseAfter`: a job that fails again and again stops firing, until somebody has looked at it."""

from collections.abc import Collection
from uuid import UUID

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import Env
from horae.model.base.event import Event
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects
from horae.store.triggers import streaks

LOOK = 30.0  # seconds between looks at jobs that failed while nobody was there to see it
MINUTE = 60_000_000
BACK = 3  # minutes that such a look goes back
log = structlog.get_logger("horae.engine")


class Streaks:
    """Looks at jobs of which something has just failed, as this server heard, and now and then at all that did."""

    name = "streaks"

    def __init__(self, env: Env, store: Store, hints: Hints, topics: Topics) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._failed: set[UUID] = set()  # jobs of which something failed since the last look
        self._look_at = 0.0
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
        """Look at each of them once."""
        failed, self._failed = self._failed, set()
        if self._env.clock.monotonic() >= self._look_at:
            since = self._env.now() // MINUTE - BACK
            failed |= await self._store.read(lambda: streaks.failed_lately(since))
            self._look_at = self._env.clock.monotonic() + LOOK
        for job in sorted(failed):
            await self._look(job)
        return LOOK

    async def _look(self, job: UUID) -> None:
        if not await self._store.read(lambda: streaks.is_watched(job)):
            return
        done = await self._store.change(lambda now: streaks.pause_if_failing(job, now))
        if done is None:
            return
        namespace, pause = done
        self.paused += 1
        log.warning("triggers paused after failures", job=str(job), failures=pause.failures, triggers=pause.triggers)
        event = Event("job", job, "auto-paused", namespace, self._env.now())
        self._hints.send(Hint(jobs=[job], events=[event]))
