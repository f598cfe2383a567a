"""Fire: due triggers become executions, each nominal fire once, whichever server comes first."""

from collections.abc import Callable

import structlog

from horae.engine.clockwatch import ClockWatch
from horae.engine.directory import Directory
from horae.engine.hints import Hint, Hints
from horae.engine.promote import OTHERS, SAFETY, is_held, until
from horae.engine.service import Alarm, Wait
from horae.engine.settings import EngineSettings
from horae.engine.submit import created
from horae.env import Env, Instant
from horae.store.contract import Store

log = structlog.get_logger("horae.engine")


class Scheduler:
    """Decides due timers; sleeps until the earliest, or until a job with an earlier one is made."""

    name = "scheduler"

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: Directory,
        hints: Hints,
        settings: EngineSettings,
        clock: ClockWatch,
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._batch, self._clock = settings.fire_batch, clock
        self._next: Instant | None = None
        self.fired = 0
        self.alarm = Alarm()
        self.on_blocked: Callable[[], object] = lambda: None  # told when something began to wait for its turn
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.fire_at is not None and (self._next is None or hint.fire_at < self._next):
            self._next = hint.fire_at
            self.alarm.ring()

    async def step(self) -> Wait:
        """Fire one batch; a full batch asks to be called again at once."""
        if not self._clock.trusted:
            return SAFETY
        asked_at = self._env.now()
        done = await self._store.fire(self._batch, self._directory.lead)
        now = self._env.now()
        self.fired += sum(len(parcel) for parcel in done.parcels)
        for trouble in done.troubles:
            log.error(
                "trigger cannot be decided", trigger=str(trouble.trigger), job=str(trouble.job), error=trouble.reason
            )
        events = [created(parcel, now) for parcel in done.parcels[:20]]
        self._hints.tell(Hint(lanes=done.lanes, wake_at=done.wake_at, events=events))
        if done.blocked:
            self.on_blocked()
        if done.timers == self._batch:
            return 0.0
        self._next = await self._store.next_fire_at()
        if done.timers == 0 and is_held(self._next, asked_at):
            return OTHERS
        return until(self._next, self._env.now())
