"""The sweep: housekeeping that one server at a time does.

The server is selected by a duty: a lease in the store. Two servers at a time would also be safe.
"""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.definitions.job_deletions import JobDeletions
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
from horae.store.expiry.expiry import Cutoffs, Sweep
from horae.store.expiry.fire_expiry import LATE_BY
from horae.store.tenancy import namespaces

TERM = 30 * SECOND  # how long a duty is held without renewal
INTERVAL = 10.0  # seconds between two rounds
BATCH = 1000  # deduplication keys, or rows of usage, in one transaction
PAGES = 20  # a round ends after this many pages of parcels in a row from which nothing was deleted
WALK = 600.0  # seconds between walks over all parcels
KEEP_USAGE = 400  # days
KEEP_SESSIONS = 86_400 * SECOND
KEEP_MINUTE_STATISTICS = 2 * 86_400 * SECOND  # statistics by hour and by day are kept for longer
log = structlog.get_logger("horae.engine")


class Sweeper:
    """Creates partitions in advance, deletes expired rows, continues deletions of jobs, and repairs inconsistent rows.

    A bug or a race left the inconsistent rows behind, see `_heal`.
    """

    name = "sweeper"

    def __init__(
        self,
        env: Env,
        store: Store,
        node: UUID,
        settings: EngineSettings,
        clock: ClockWatch,
        open_gate: Callable[[UUID], Awaitable[None]],
        deletions: JobDeletions,
        sweeps: Sequence[Sweep] = (),
    ) -> None:
        """Make a sweeper.

        `open_gate` queues executions that waited for their job to be resumed. `sweeps` delete the expired rows of
        features.
        """
        self._env, self._store, self._node, self._settings = env, store, node, settings
        self._clock, self._open_gate, self._deletions = clock, open_gate, deletions
        self._sweeps = tuple(sweeps)
        self._fires_low = 0
        self._keys_walked = key_expiry.START
        self._walked = expiry.FIRST_ID
        self._walk_at = 0.0
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Run one round if this server has the duty. After a jump of the clock nothing is deleted."""
        await self._clock.step()
        if not self._clock.trusted:
            return INTERVAL
        now = self._env.now()
        if not await self._store.write(lambda: housekeeping.take_duty("sweep", self._node, now, now + TERM)):
            return INTERVAL
        await self._heal()
        await self._finish_deletions()
        await self._store.database.ensure_partitions(now)
        await self._forget_executions(now)
        while await self._store.write(lambda: housekeeping.forget_expired(now, now - KEEP_SESSIONS)):
            await self._env.clock.sleep(0)
        await self._forget_keys(now)
        while await self._store.write(lambda: quotas.forget_usage(day_of(now) - KEEP_USAGE, BATCH)):
            await self._env.clock.sleep(0)
        await self._forget_fires(now - self._settings.fire_retention)
        oldest = now - self._settings.retention
        minutes = max(oldest, now - KEEP_MINUTE_STATISTICS)
        while await self._store.write(
            lambda: housekeeping.forget_records(now - self._settings.fire_retention, minutes)
        ):
            await self._env.clock.sleep(0)
        cutoffs = Cutoffs(oldest, now - self._settings.fire_retention, now)
        for sweep_feature in self._sweeps:
            while await self._store.write(lambda: sweep_feature(cutoffs)):  # noqa: B023
                await self._env.clock.sleep(0)
        return INTERVAL

    async def _forget_executions(self, now: Instant) -> None:
        """Delete executions after their retention, except those that are to be archived: the archiver deletes them.

        If namespaces have a retention of their own, also walk over all parcels, some pages in each round.
        """
        rules = await self._store.read(namespaces.retentions)
        retention = Retention(self._settings.retention, rules).excluding(
            await self._store.read(namespaces.archived_outcomes)
        )
        while await self._store.database.expire(now - retention.everywhere, longer=retention.longer_rules(now)):
            await self._env.clock.sleep(0)
        if retention.is_plain or self._env.clock.monotonic() < self._walk_at:
            return
        in_vain = 0
        while in_vain < PAGES:
            page = expiry.walk(self._walked, now - min(retention.spans), retention, now)
            place, gone = await self._store.write_slowly(page)
            self._walked = place or expiry.FIRST_ID
            if place is None:
                self._walk_at = self._env.clock.monotonic() + WALK
                return
            in_vain = 0 if gone else in_vain + 1
            await self._env.clock.sleep(0)

    async def _forget_keys(self, now: Instant) -> None:
        """Delete expired deduplication keys.

        Then check the next BATCH of the other keys, and delete keys that hold neither a live execution nor a usable
        result.
        """
        while await self._store.write(lambda: key_expiry.expire(now, BATCH)):
            await self._env.clock.sleep(0)
        self._keys_walked = await self._store.write(lambda: key_expiry.forget(self._keys_walked, BATCH, now))

    async def _forget_fires(self, before: Instant) -> None:
        """Delete the rows of fires before an instant from the ledger.

        The next round looks only at fires from LATE_BY before this instant onwards. Older rows can remain only if their
        fires were decided more than LATE_BY late; a separate index finds these rows.
        """
        while await self._store.database.expire_fires(self._fires_low, before):
            await self._env.clock.sleep(0)
        self._fires_low = before - LATE_BY

    async def _finish_deletions(self) -> None:
        """Continue deletions of jobs that a stopped server or a lock of another transaction left unfinished."""
        for job in await self._deletions.unfinished():
            await self._deletions.finish(job)

    async def _heal(self) -> None:
        """Repair inconsistent rows.

        Release executions that wait for their job to be resumed although it is not paused. Store an ended session for
        running slices whose session does not exist, so that the rescuer takes these slices back.
        """
        for job in await self._store.gates_left_open():
            await self._open_gate(job)
        lost = await self._store.write(lambda: housekeeping.adopt_orphans(self._env.now()))
        if lost:
            log.error("running slices without a session were found", sessions=[str(session) for session in lost])
