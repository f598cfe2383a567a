"""Timeouts of what no worker holds: what stood in the queue, or took altogether, for too long ends as failed."""

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.executions.promote import OTHERS, SAFETY, is_held, until
from horae.engine.service import Alarm, Wait
from horae.engine.settings import EngineSettings
from horae.env import Env
from horae.features.statistics.engine.statistics import Statistics
from horae.store.contract import Store
from horae.store.executions.leaving import timeouts


class Timeouts:
    """Ends what is over its time; sleeps until the earliest that may be."""

    name = "timeouts"

    def __init__(
        self, env: Env, store: Store, hints: Hints, settings: EngineSettings, statistics: Statistics, clock: ClockWatch
    ) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._batch, self._statistics, self._clock = settings.promote_batch, statistics, clock
        self.ended = 0
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Look at one batch of parcels; a full batch asks to be called again at once."""
        if not self._clock.trusted:
            return SAFETY
        asked_at = self._env.now()
        looked, effects = await self._store.end_overdue(self._batch)
        if effects.ended:
            self.ended += sum(one.hi - one.lo for one in effects.ended)
            self._statistics.add(effects)
            wake_at = min(effects.wakes, default=None)
            events = self._statistics.events(effects)
            self._hints.tell(Hint(lanes=effects.requeued, wake_at=wake_at, events=events))
        if looked == self._batch:
            return 0.0
        next_at = await self._store.read(timeouts.next_due)
        if looked == 0 and is_held(next_at, asked_at):
            return OTHERS
        return until(next_at, self._env.now())
