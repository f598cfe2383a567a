"""Timeouts of executions that no worker holds: those that took too long in the queue, or altogether, end as failed."""

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.executions.outcomes import Outcomes
from horae.engine.executions.promoter import CHECK_EVERY, RETRY_HELD, is_held, wait_until
from horae.engine.service import Alarm, Wait
from horae.engine.settings import EngineSettings
from horae.env import Env
from horae.store.contract import Store
from horae.store.executions.leaving import timeouts


class TimeoutEnforcer:
    """Ends overdue executions. Sleeps until the earliest possible timeout."""

    name = "timeouts"

    def __init__(self, env: Env, store: Store, settings: EngineSettings, outcomes: Outcomes, clock: ClockWatch) -> None:
        self._env, self._store = env, store
        self._batch, self._outcomes, self._clock = settings.promote_batch, outcomes, clock
        self.ended = 0
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Check one batch of parcels; return the wait before the next call: 0 if the batch was full."""
        if not self._clock.trusted:
            return CHECK_EVERY
        asked_at = self._env.now()
        checked, effects = await self._store.end_overdue(self._batch)
        if effects.ended:
            self.ended += sum(end.hi - end.lo for end in effects.ended)
            self._outcomes.publish_settled(effects)
        if checked == self._batch:
            return 0.0
        next_at = await self._store.read(timeouts.next_due)
        if checked == 0 and is_held(next_at, asked_at):
            return RETRY_HELD
        return wait_until(next_at, self._env.now())
