"""The backfiller: past fires become executions, a bounded number at a time. Any server can process any backfill."""

from uuid import UUID

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.submitter import creation_event
from horae.engine.service import Alarm, Wait
from horae.env import Env
from horae.errors import StoreUnavailable
from horae.features.backfills.store.backfills import FIRST, unfinished
from horae.features.backfills.store.work import BackfillStep, process
from horae.model.executions.execution import FINAL
from horae.store.contract import Store

TOGETHER = 100  # backfills that are read together
BUSY = 1.0  # seconds between steps while backfills are unfinished, because hints about ended executions may be lost
IDLE = 5.0  # seconds between steps while no backfill is unfinished, because other servers may create one
log = structlog.get_logger("horae.engine")


class Backfiller:
    """The service that processes unfinished backfills.

    It wakes when a backfill is created or resumed, or when an execution of its job has ended.
    """

    name = "backfiller"

    def __init__(self, env: Env, store: Store, directory: LocalDirectory, hints: Hints) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._jobs: frozenset[UUID] = frozenset()  # the jobs of unfinished backfills
        self.started = 0
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if self._jobs and any(event.job in self._jobs and event.state in FINAL for event in hint.events):
            self.alarm.ring()

    async def step(self) -> Wait:
        """Process each unfinished backfill once.

        Return the wait before the next call in seconds: 0 if one of them can start more executions at once.
        """
        more, jobs, page, after = False, set[UUID](), TOGETHER, FIRST
        while page == TOGETHER:
            found = await self._store.read(lambda: unfinished(TOGETHER, after))  # noqa: B023
            for backfill_id, job in found:
                jobs.add(job)
                more |= await self._try(backfill_id)
                after = backfill_id
            page = len(found)
        self._jobs = frozenset(jobs)
        if not jobs:
            return IDLE
        return 0.0 if more else BUSY

    async def _try(self, backfill_id: UUID) -> bool:
        """Process a backfill, so that its failure does not stop the others; return whether it can start more."""
        try:
            worked = await self._work(backfill_id)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("a backfill could not be processed", backfill=str(backfill_id))
            return False
        return worked is not None and worked.more

    async def _work(self, backfill_id: UUID) -> BackfillStep | None:
        env, lead, bounds, now = self._env, self._directory.lead, self._store.bounds, self._env.now()
        worked = await self._store.write(lambda: process(backfill_id, lead, env.new_id, now, bounds=bounds))
        if worked is not None and worked.parcels:
            self._store.created(worked.parcels)
            now = env.now()
            self.started += sum(map(len, worked.parcels))
            events = [creation_event(parcel, now) for parcel in worked.parcels[:20]]
            self._hints.send(Hint(lanes=worked.lanes, wake_at=worked.wake_at, events=events))
        return worked
