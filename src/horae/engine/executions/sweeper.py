"""Sweep: the housekeeping that must be single. Whoever holds the duty does it; nothing is unsafe if two do."""

from collections.abc import Sequence
from uuid import UUID

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.definitions.job_deletions import JobDeletions
from horae.engine.executions.promoter import Promoter
from horae.engine.service import Alarm, Wait
from horae.engine.settings import EngineSettings
from horae.env import SECOND, Env, Instant
from horae.model.admission.quota import day_of
from horae.model.tenancy.namespace import Retention
from horae.store.admission import quotas
from horae.store.contract import Store
from horae.store.executions.deduplication import key_expiry
from horae.store.executions.reads import housekeeping
from horae.store.expiry import expiry
from horae.store.expiry.expiry import Ages, Sweep
from horae.store.expiry.fire_expiry import LATE_BY
from horae.store.tenancy import namespaces

TERM = 30 * SECOND  # how long a duty is held without renewal
LOOK = 10.0
MEETINGS = 1000  # keys looked at in one transaction
PAGES = 20  # of parcels looked at in a round where nothing is to be forgotten
WALK = 600.0  # seconds between walks over all of them
KEEP_USAGE = 400  # days
KEEP_SESSIONS = 86_400 * SECOND
KEEP_MINUTES = 2 * 86_400 * SECOND  # of jobs: what is learned and scaled by; hours and days are kept for longer
log = structlog.get_logger("horae.engine")


class Sweeper:
    """Keeps partitions ahead, forgets what has expired, goes on with deletions, heals (and counts) what a bug left."""

    name = "sweeper"

    def __init__(
        self,
        env: Env,
        store: Store,
        node: UUID,
        settings: EngineSettings,
        promoter: Promoter,
        clock: ClockWatch,
        deletions: JobDeletions,
        sweeps: Sequence[Sweep] = (),
    ) -> None:
        """`sweeps` are what features forget."""
        self._env, self._store, self._node, self._settings = env, store, node, settings
        self._promoter, self._clock, self._deletions = promoter, clock, deletions
        self._sweeps = tuple(sweeps)
        self._fires_low = 0
        self._meetings = key_expiry.START
        self._walked = expiry.START
        self._walk_at = 0.0
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """One round, if the duty is ours. A clock that has just jumped must not make everything look old."""
        await self._clock.step()
        if not self._clock.trusted:
            return LOOK
        now = self._env.now()
        if not await self._store.write(lambda: housekeeping.take_duty("sweep", self._node, now, now + TERM)):
            return LOOK
        await self._heal()
        await self._finish_deletions()
        await self._store.driver.ensure_partitions(now)
        await self._forget_executions(now)
        while await self._store.write(lambda: housekeeping.forget_expired(now, now - KEEP_SESSIONS)):
            await self._env.clock.sleep(0)
        await self._forget_meetings(now)
        while await self._store.write(lambda: quotas.forget_usage(day_of(now) - KEEP_USAGE, MEETINGS)):
            await self._env.clock.sleep(0)
        await self._forget_fires(now - self._settings.fire_retention)
        kept = now - self._settings.retention
        minutes = max(kept, now - KEEP_MINUTES)
        while await self._store.write(
            lambda: housekeeping.forget_records(now - self._settings.fire_retention, minutes)
        ):
            await self._env.clock.sleep(0)
        ages = Ages(kept, now - self._settings.fire_retention, now)
        for sweep_feature in self._sweeps:
            while await self._store.write(lambda: sweep_feature(ages)):  # noqa: B023
                await self._env.clock.sleep(0)
        return LOOK

    async def _forget_executions(self, now: Instant) -> None:
        """Forget what ended long ago; if namespaces keep it for other times, look at some in turn, too.

        What is to be archived is forgotten by the archiver, and by nobody else.
        """
        rules = await self._store.read(namespaces.retentions)
        retention = Retention(self._settings.retention, rules).leaving_out(
            await self._store.read(namespaces.archived_outcomes)
        )
        while await self._store.driver.expire(now - retention.everywhere, longer=retention.longer(now)):
            await self._env.clock.sleep(0)
        if retention.is_plain or self._env.clock.monotonic() < self._walk_at:
            return
        in_vain = 0
        while in_vain < PAGES:
            page = expiry.walk(self._walked, now - min(retention.spans), retention, now)
            place, gone = await self._store.write_slowly(page)
            self._walked = place or expiry.START
            if place is None:
                self._walk_at = self._env.clock.monotonic() + WALK
                return
            in_vain = 0 if gone else in_vain + 1
            await self._env.clock.sleep(0)

    async def _forget_meetings(self, now: Instant) -> None:
        """Forget keys that stand for nothing any more: those whose time is over, and some of the others in turn."""
        while await self._store.write(lambda: key_expiry.expire(now, MEETINGS)):
            await self._env.clock.sleep(0)
        self._meetings = await self._store.write(lambda: key_expiry.forget(self._meetings, MEETINGS, now))

    async def _forget_fires(self, before: Instant) -> None:
        """Forget old rows of the ledger; the next round begins where this one ended, a day earlier.

        Of what lies before that only what was decided late can be there, and that has an index of its own.
        """
        while await self._store.driver.expire_fires(self._fires_low, before):
            await self._env.clock.sleep(0)
        self._fires_low = before - LATE_BY

    async def _finish_deletions(self) -> None:
        """Go on where a server ended in the middle of a deletion, or found slices that somebody held."""
        for job in await self._deletions.unfinished():
            await self._deletions.finish(job)

    async def _heal(self) -> None:
        for job in await self._store.gates_left_open():
            await self._promoter.open_gate(job)
        lost = await self._store.write(lambda: housekeeping.adopt_orphans(self._env.now()))
        if lost:
            log.error("running slices without a session were found", sessions=[str(id) for id in lost])
