"""Archiving: executions past their retention are written to a file, and only then deleted.

One transaction adds the row of the file and deletes its executions. If a server crashes before this transaction, the
file has no row. It is then deleted as litter, and its executions are archived again.
"""

from uuid import UUID

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.executions.executions import Executions
from horae.engine.service import Alarm, Wait
from horae.engine.storage.file_storage import FileStorage
from horae.env import SECOND, Env, Instant, Micros
from horae.features.archive.engine.files import Writing, discard
from horae.features.archive.store import archives
from horae.model.base.ids import execution_id
from horae.model.base.instant import format_instant
from horae.model.base.store_view import OngoingProblem
from horae.model.tenancy.namespace import Outcome, Retention
from horae.store.contract import Store
from horae.store.executions.reads import housekeeping
from horae.store.expiry import expiry
from horae.store.tenancy import namespaces

LOOK = 30.0  # seconds between two checks while there is nothing to archive
WALK = 600.0  # seconds between two passes over all parcels of a namespace
TERM = 300 * SECOND  # the duration of the lease by which only one server archives
PAGE = 1000  # parcels that are checked together
MOST = 20_000  # the most executions in a file, unless one parcel has more
DUTY = "archive"
log = structlog.get_logger("horae.archive")


class Archiver:
    """A service that writes expired executions to files.

    Only the server that holds the duty archives. If two servers do it nevertheless, no execution is lost or archived
    twice.
    """

    name = "archiver"

    def __init__(
        self, env: Env, store: Store, node: UUID, retention: Micros, clock: ClockWatch, executions: Executions,
        place: FileStorage,
    ) -> None:  # fmt: skip
        self._env, self._store, self._node, self._retention = env, store, node, retention
        self._clock, self._executions, self._place = clock, executions, place
        self._walked: dict[int, UUID] = {}  # the last parcel that was checked, by namespace
        self._walk_at: dict[int, float] = {}  # when the next pass or try begins (monotonic), by namespace
        self._failures_in_row = 0
        self._again_at = 0.0  # when to try again after a failure (monotonic)
        self._unread: set[int] = set()  # namespaces with executions that could not be read
        self._reported = True  # whether a problem is stored, perhaps by another server
        self.archived = 0  # the number of executions that this server has archived
        self.failures = 0  # the number of files that this server could not write
        self.alarm = Alarm()

    @property
    def is_failing(self) -> bool:
        return bool(self._failures_in_row or self._unread)

    async def trouble(self) -> OngoingProblem | None:
        """Return the stored problem that prevents archiving, or None."""
        found = await self._store.read(lambda: housekeeping.problem_of(DUTY))
        return None if found is None else OngoingProblem(problem=found[0], since=format_instant(found[1]))

    async def step(self) -> Wait:
        """Archive the next page of parcels of each namespace that archives executions."""
        wanted = await self._store.read(namespaces.archived_outcomes)
        now = self._env.now()
        if not wanted:
            await self._clear_trouble()
            return LOOK
        if not self._clock.trusted or self._env.clock.monotonic() < self._again_at:
            return LOOK
        if not await self._store.write(lambda: housekeeping.take_duty(DUTY, self._node, now, now + TERM)):
            # Forget this server's problems, because another server has the duty now and reports its own.
            self._failures_in_row, self._reported = 0, True
            self._unread.clear()
            return LOOK
        await self._mark_readable(self._unread - wanted.keys())
        retention = Retention(self._retention, await self._store.read(namespaces.retentions))
        for namespace, outcomes in wanted.items():
            if self._env.clock.monotonic() >= max(self._again_at, self._walk_at.get(namespace, 0.0)):
                await self._page(namespace, outcomes, retention.only(namespace), now)
        waiting = all(self._env.clock.monotonic() < self._walk_at.get(namespace, 0.0) for namespace in wanted)
        return LOOK if waiting else 0.0

    async def _page(self, namespace: int, outcomes: tuple[Outcome, ...], retention: Retention, now: Instant) -> None:
        """Archive the expired executions in the next page of a namespace's parcels."""
        after = self._walked.get(namespace, expiry.FIRST_ID)
        before = now - retention.shortest_of(namespace)
        place, over = await self._store.read(lambda: expiry.past_retention(after, before, retention, now, PAGE))
        if over and not await self._archive(namespace, outcomes, over):
            self._walk_at[namespace] = self._env.clock.monotonic() + LOOK
            return
        self._walked[namespace] = place or expiry.FIRST_ID
        if place is None:
            await self._mark_readable({namespace})
            self._walk_at[namespace] = self._env.clock.monotonic() + WALK

    async def _archive(self, namespace: int, outcomes: tuple[Outcome, ...], over: list[expiry.EndedParcel]) -> bool:
        """Write these parcels to files and delete them; return False if anything failed."""
        ended = await self._store.read(lambda: archives.items([parcel for parcel, _ in over]))
        ids: dict[UUID, list[UUID]] = {parcel: [] for parcel, _ in over}
        for parcel, lo, hi, state in ended:
            if state in outcomes:
                ids[parcel] += [execution_id(parcel, item) for item in range(lo, hi)]
        batch: list[expiry.EndedParcel] = []
        chosen: list[UUID] = []
        for one in over:
            if chosen and len(chosen) + len(ids[one[0]]) > MOST:
                if not await self._put(namespace, batch, chosen):
                    return False
                batch, chosen = [], []
            batch.append(one)
            chosen += ids[one[0]]
        return await self._put(namespace, batch, chosen)

    async def _put(self, namespace: int, over: list[expiry.EndedParcel], ids: list[UUID]) -> bool:
        """Write a file of executions, and then delete their parcels (`over`); return False if that failed.

        Without `ids` there is nothing to archive, and the parcels are only deleted.
        """
        if not ids:
            return await self._store.write(lambda: archives.put(None, {}, over))
        writing = Writing(self._env, self._store, self._executions, namespace, ids)
        now = self._env.now()
        await self._store.write(lambda: archives.announce(namespace, writing.location, now))
        try:
            await self._place.write(writing.location, writing.pieces())
        except Exception as error:  # storages raise errors of any type; no execution is deleted then
            if writing.unavailable is not None:
                raise writing.unavailable from None
            # Remove the incomplete file, so that it does not fill the storage.
            await discard(self._store, self._place, writing.location)
            if writing.broken is None or not await self._changed(over):
                await self._report_trouble(namespace, writing, error)
            return False
        archive = writing.archive()
        done = await self._store.write(lambda: archives.put(archive, writing.jobs, over))
        if done:
            self.archived += len(ids)
        else:  # some executions were changed, erased, or archived by another server meanwhile
            await discard(self._store, self._place, writing.location)
        if self._failures_in_row:
            self._failures_in_row = 0
            log.info("the archive can be written again", place=self._place.url)
        self._unread.discard(namespace)
        if not self._unread:
            await self._store.write(lambda: housekeeping.report_duty(DUTY, None, now))
        return done

    async def _changed(self, over: list[expiry.EndedParcel]) -> bool:
        """Return whether some of these parcels were deleted or changed while their file was written."""
        return len(await self._store.read(lambda: expiry.unneeded_among(over))) < len(over)

    async def _mark_readable(self, namespaces: set[int]) -> None:
        """Note that these namespaces have no unreadable executions."""
        if self._unread & namespaces:
            self._unread -= namespaces
            if not self.is_failing:
                await self._clear_trouble()

    async def _clear_trouble(self) -> None:
        """Delete the stored problem, unless this was done already."""
        self._failures_in_row = 0
        self._unread.clear()
        if self._reported:
            await self._store.write(lambda: housekeeping.report_duty(DUTY, None, self._env.now()))
            self._reported = False

    async def _report_trouble(self, namespace: int, writing: Writing, error: Exception) -> None:
        """Store the problem. If the storage failed, set a pause that grows with each failure."""
        self.failures += 1
        self._reported = True
        if writing.broken is not None:
            self._unread.add(namespace)
            problem = f"expired executions of namespace {namespace} cannot be read: {writing.broken}"
        else:
            self._failures_in_row += 1
            self._again_at = self._env.clock.monotonic() + min(LOOK * 2 ** (self._failures_in_row - 1), WALK)
            problem = f"{self._place.url} cannot be written to: {type(error).__name__}: {error}"
        log.error("the archive cannot be written", problem=problem, failures=self._failures_in_row)
        await self._store.write(lambda: housekeeping.report_duty(DUTY, problem[:500], self._env.now()))
