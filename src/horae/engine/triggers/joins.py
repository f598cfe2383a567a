"""Incomplete joins: waiting executions are skipped when a required job fails, or end when they waited for too long."""

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.executions.outcomes import Outcomes
from horae.engine.executions.promoter import CHECK_EVERY, RETRY_HELD, is_held, wait_until
from horae.engine.service import Alarm, Wait
from horae.engine.settings import EngineSettings
from horae.env import Env, Instant
from horae.store.contract import Store


class JoinChecker:
    """Checks joins whose `wake_at` has come: a required job failed, or the execution has waited too long.

    When the last required job ends, the transaction of that end starts the dependent execution. So this service handles
    only joins that stay incomplete.
    """

    name = "joiner"

    def __init__(
        self,
        env: Env,
        store: Store,
        hints: Hints,
        settings: EngineSettings,
        outcomes: Outcomes,
        clock: ClockWatch,
    ) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._batch, self._outcomes, self._clock = settings.promote_batch, outcomes, clock
        self._next: Instant | None = None
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.wake_at is not None and (self._next is None or hint.wake_at < self._next):
            self._next = hint.wake_at
            self.alarm.ring()

    async def step(self) -> Wait:
        """Check one batch of joins; return the wait before the next call: 0 if the batch was full."""
        if not self._clock.trusted:
            return CHECK_EVERY
        asked_at = self._env.now()
        met, effects = await self._store.look_at_joins(self._batch)
        if met:
            self._outcomes.publish_settled(effects)
        if met == self._batch:
            return 0.0
        self._next = await self._store.next_join()
        if met == 0 and is_held(self._next, asked_at):
            return RETRY_HELD
        return wait_until(self._next, self._env.now())
