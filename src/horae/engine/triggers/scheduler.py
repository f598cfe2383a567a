"""The scheduler: due triggers become executions.

Each nominal fire is decided once, by the first server that reaches it.
"""

import asyncio
from collections.abc import Sequence

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.counters import Counters
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.promoter import CHECK_EVERY, RETRY_HELD, is_held, wait_until
from horae.engine.executions.submitter import creation_event
from horae.engine.service import Alarm, Wait
from horae.engine.settings import EngineSettings
from horae.engine.topics import FiredParcels, Topics
from horae.env import SECOND, Env, Instant
from horae.model.base.event import ChangeEvent
from horae.store.contract import Store
from horae.store.triggers import streaks
from horae.store.triggers.due import FIRST, Mark, Trouble
from horae.store.triggers.fire import FireResult

IN_FLIGHT = 2  # concurrent batches
IN_A_ROW = 4  # batches that one of the concurrent tasks decides before the step ends
FEWEST = 250  # timers in a batch, even if the store is slow
INLINE, APART = 0.05, 0.5  # seconds that a batch may take: with the store in this process, and in another one

log = structlog.get_logger("horae.engine")


class BatchSize:
    """The number of timers in a batch: as many as the store decides in the time that other work can wait."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self.size = most

    def learn(self, timers: int, took: float) -> None:
        """Adapt the size to the time that a full batch took."""
        if took > 0:
            self.size = min(self._most, max(FEWEST, int(timers * self._seconds / took)))


class Scheduler:
    """Decides due timers. Sleeps until the earliest one, or until a job with an earlier one is created."""

    name = "scheduler"

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        settings: EngineSettings,
        clock: ClockWatch,
        counters: Counters,
        topics: Topics,
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._clock = clock
        self._is_inline = not store.database.is_shared
        self._batch_size = BatchSize(settings.fire_batch, INLINE if self._is_inline else APART)
        self._next: Instant | None = None  # when the next known timer is due
        self._low: Mark = FIRST  # timers that were due before this mark have been decided
        self._scan_at = 0.0  # monotonic time of the next search through all due timers
        self._behind = False  # whether more timers were due than the last step decided
        self.fired = 0
        self._counters, self._topics = counters, topics
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.fire_at is None:
            return
        self._scan_at = 0.0  # a changed timer may be long overdue
        if self._next is None or hint.fire_at < self._next:
            self._next = hint.fire_at
            self.alarm.ring()

    async def step(self) -> Wait:
        """Decide due timers; return the wait before the next call: 0 if more are due."""
        if not self._clock.trusted:
            return CHECK_EVERY
        asked_at, low = self._env.now(), self._from()
        decided, left = await self._fire(low)
        self._behind = left is not None
        if left is not None:
            self._low = left
            return 0.0
        self._low = asked_at - SECOND, FIRST[1]
        self._next = await self._store.next_fire_at(low)
        if decided == 0 and is_held(self._next, asked_at):
            return RETRY_HELD
        return wait_until(self._next, self._env.now())

    async def _fire(self, low: Mark) -> tuple[int, Mark | None]:
        """Decide due timers; return their number, and the mark from which on more may be due.

        While the scheduler is behind, two batches run concurrently, so that one is computed while the store writes the
        other. With a store in this process that would gain nothing.
        """
        if not self._behind or self._is_inline:
            return await self._run_down(low, 1)
        ended = await asyncio.gather(*(self._run_down(low, IN_A_ROW) for _ in range(IN_FLIGHT)), return_exceptions=True)
        done = [result for result in ended if not isinstance(result, BaseException)]
        for failure in ended:
            if isinstance(failure, BaseException):
                raise failure
        return sum(decided for decided, _ in done), min((left for _, left in done if left is not None), default=None)

    async def _run_down(self, low: Mark, most: int) -> tuple[int, Mark | None]:
        """Decide up to `most` batches, until one is not full."""
        decided = 0
        through: Mark | None = low
        while most and through is not None:
            size, begun = self._batch_size.size, self._env.clock.monotonic()
            done = await self._store.fire(size, self._directory.lead, through, self._directory.delays)
            self._tell(done)
            await self._pause_costly(done.troubles)
            decided, most = decided + done.timers, most - 1
            through = done.through if done.timers == size else None
            if through is not None:
                self._batch_size.learn(size, self._env.clock.monotonic() - begun)
        return decided, through

    def _tell(self, done: FireResult) -> None:
        now = self._env.now()
        self.fired += sum(len(parcel) for parcel in done.parcels)
        self._counters.fired(((parcel.envelope.due_at, len(parcel)) for parcel in done.parcels), now)
        self._topics.fired(FiredParcels(done.parcels, now))
        for trouble in done.troubles:
            log.error(
                "trigger cannot be decided", trigger=str(trouble.trigger), job=str(trouble.job), error=trouble.reason
            )
        events = [creation_event(parcel, now) for parcel in done.parcels[:20]]
        self._hints.send(Hint(lanes=done.lanes, wake_at=done.wake_at, events=events))
        if done.blocked:
            self._topics.blocked(None)

    async def _pause_costly(self, troubles: Sequence[Trouble]) -> None:
        """Pause jobs with expressions that take too much work, because every fire would repeat that work."""
        for job, reason in {trouble.job: trouble.reason for trouble in troubles if trouble.costly}.items():
            namespace = await self._store.change(lambda now: streaks.pause_for(job, reason, now))  # noqa: B023
            if namespace is not None:
                log.warning("job paused, because an expression takes too much work", job=str(job), error=reason)
                event = ChangeEvent("job", job, "auto-paused", namespace, self._env.now())
                self._hints.send(Hint(jobs=[job], events=[event]))

    def _from(self) -> Mark:
        """Return the mark from which due timers are searched, because earlier ones have been decided.

        Once a second, all due timers are searched.
        """
        now = self._env.clock.monotonic()
        if now < self._scan_at:
            return self._low
        self._scan_at = now + CHECK_EVERY
        return FIRST
