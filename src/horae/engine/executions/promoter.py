"""Due times of executions that no worker holds: promotion to the queue, and timeouts."""

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.outcomes import Outcomes
from horae.engine.service import Alarm, Wait
from horae.engine.settings import EngineSettings
from horae.env import SECOND, Env, Instant
from horae.store.contract import Store
from horae.store.executions.leaving import timeouts
from horae.store.executions.promote import LONG_AGO

CHECK_EVERY = 1.0  # seconds between checks that need no hint
RETRY_HELD = 0.05  # seconds before rows that other servers hold are checked again


def wait_until(instant: Instant | None, now: Instant) -> Wait:
    """Return the seconds until an instant, but at most CHECK_EVERY."""
    return CHECK_EVERY if instant is None else min(CHECK_EVERY, max(0.0, (instant - now) / SECOND))


def is_held(instant: Instant | None, asked_at: Instant) -> bool:
    """Return whether the earliest stored row was already due at `asked_at`, when a statement found nothing.

    Then another transaction holds the row, and the statement must run again in a moment.
    """
    return instant is not None and instant <= asked_at


class Promoter:
    """Queues due executions. Sleeps until the next one is due, or until a hint announces an earlier one."""

    name = "promoter"

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        settings: EngineSettings,
        clock: ClockWatch,
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._batch, self._clock = settings.promote_batch, clock
        self._next: Instant | None = None  # when the next known execution is due
        self._low = LONG_AGO  # executions that were due before this instant have been queued
        self._scan_at = 0.0  # monotonic time of the next search through all due executions
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.wake_at is not None and (self._next is None or hint.wake_at < self._next):
            self._low = min(self._low, hint.wake_at)
            self._next = hint.wake_at
            self.alarm.ring()

    async def step(self) -> Wait:
        """Queue one batch, and return the wait before the next call: 0 if the batch was full, as more may be due."""
        if not self._clock.trusted:
            return CHECK_EVERY
        asked_at = self._env.now()
        promoted = await self._store.promote_due(self._from(), self._batch, self._directory.rank)
        self._hints.send(Hint(lanes=promoted.lanes, wake_at=promoted.wake_at))
        if promoted.rows == self._batch:
            return 0.0
        self._low = self._env.now() - SECOND
        self._next = await self._store.next_wake()
        if promoted.rows == 0 and is_held(self._next, asked_at):
            return RETRY_HELD
        return wait_until(self._next, self._env.now())

    def _from(self) -> Instant:
        """Return the instant from which to look for due executions; earlier ones have been queued.

        Once a second, look for all due executions.
        """
        now = self._env.clock.monotonic()
        if now < self._scan_at:
            return self._low
        self._scan_at = now + CHECK_EVERY
        return LONG_AGO


class TimeoutEnforcer:
    """Ends executions that took too long in the queue, or altogether. Sleeps until the earliest possible timeout."""

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
