"""The watcher: it scans places when they are due, outside any transaction, and fires each object version once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress

import structlog

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.promoter import RETRY_HELD
from horae.engine.executions.submitter import creation_event
from horae.engine.service import Alarm, Wait
from horae.engine.storage.buckets import Open, open_bucket
from horae.engine.topics import Topics
from horae.env import SECOND, Env, Instant, Micros
from horae.errors import BadInput, HoraeError, OverQuota, StoreUnavailable
from horae.features.events.engine.watching import bucket, folder
from horae.features.events.engine.watching.object_versions import ObjectVersion, found_object
from horae.features.events.store import watches
from horae.features.events.store.events import IntakeResult
from horae.features.events.store.listeners import Check
from horae.features.events.store.watches import LEASE, LeaseLost, Poll
from horae.model.base.duration import DAY
from horae.model.triggers.decisions.external import WatchTrigger, is_within
from horae.store.contract import Store
from horae.store.triggers.refusals import Room

IDLE_WAIT = 5.0  # seconds between steps without a hint
AT_ONCE = 8  # places that one server scans concurrently
BATCH = 500  # object versions that fire in one transaction
FORGET_EVERY: Micros = DAY  # the interval at which records of vanished objects are deleted
MIN_RETRY_PAUSE: Micros = 60 * SECOND  # the shortest pause after a place could not be scanned
MOST_REASON = 500
log = structlog.get_logger("horae.engine")

Pages = AsyncIterator[list[ObjectVersion]]


class Places:
    """The places that this server may watch, and access to their objects."""

    def __init__(self, roots: Sequence[str] = (), open_store: Open = open_bucket) -> None:
        self._roots, self._open = tuple(roots), open_store

    def check(self, place: WatchTrigger, field: str = "watch") -> None:
        """Refuse a place outside the allowed roots. Raises BadInput."""
        if is_within(place.url, self._roots):
            return
        allowed = f"It may watch {', '.join(self._roots)}." if self._roots else "No places are allowed on it."
        remedy = f"{allowed} An administrator allows more with HORAE_WATCH_ROOTS, such as /srv/inbox,s3://bucket/inbox."
        raise BadInput(f"This server may not watch {place.url}.", remedy, field=field)

    def pages(self, place: WatchTrigger) -> Pages:
        """Return the objects of a place, page by page."""
        self.check(place)
        if place.is_folder:
            folders = [root.removeprefix("file://") for root in self._roots if root.startswith("file://")]
            return folder.pages(place.path, folders)
        return bucket.pages(place, self._open)


class Watcher:
    """The service that scans watched places. Several servers share the places, and take over those of a dead server."""

    name = "watcher"

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        clock: ClockWatch,
        check: Check,
        places: Places,
        topics: Topics,
    ) -> None:
        self._topics = topics
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._clock, self._check, self.places = clock, check, places
        self._scans: set[asyncio.Task[None]] = set()
        self._next: Instant | None = None
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.fire_at is not None and (self._next is None or hint.fire_at < self._next):
            self._next = hint.fire_at
            self.alarm.ring()

    async def step(self) -> Wait:
        """Start to scan the places that are due. A scan that ends wakes this service again.

        When no place is due, a step costs one read.
        """
        free = AT_ONCE - len(self._scans)
        if not self._clock.trusted or not free:
            return IDLE_WAIT
        self._next = await self._store.read(watches.next_due)
        if self._next is None or self._next > self._env.now():
            return self._wait(self._next)
        for poll in await self._store.change(lambda now: watches.lease_due(free, now)):
            task = asyncio.create_task(self._scan(poll), name=f"horae-watch-{poll.watch}")
            self._scans.add(task)
            task.add_done_callback(self._done)
        self._next = await self._store.read(watches.next_due)
        return max(RETRY_HELD, self._wait(self._next))

    async def troubled(self) -> int:
        """Count the watches that cannot be scanned."""
        return await self._store.read(watches.troubled)

    def _wait(self, instant: Instant | None) -> Wait:
        return IDLE_WAIT if instant is None else min(IDLE_WAIT, max(0.0, (instant - self._env.now()) / SECOND))

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._scans.discard(task)
        self.alarm.ring()

    async def settle(self) -> None:
        """Wait for the running scans."""
        await asyncio.gather(*self._scans)

    async def stop(self) -> None:
        """Cancel the running scans. Objects that are not written yet will be found again by the next scan."""
        for task in self._scans:
            task.cancel()
        await asyncio.gather(*self._scans, return_exceptions=True)

    async def _scan(self, poll: Poll) -> None:
        """Scan a place once. If this fails, record the error with the trigger, and scan the place again later."""
        try:
            await Scan(poll, self._env, self._store, self._write).run(self.places.pages(poll.place))
        except LeaseLost:
            log.info("another server scans this place", watch=poll.place.url)
        except StoreUnavailable as error:
            log.warning("a scan was interrupted", watch=poll.place.url, error=error.detail)
        except OverQuota as error:
            log.info("found objects wait for room in a quota", watch=poll.place.url, error=error.detail)
            await self._fail(poll, error.detail, poll.place.interval)
        except Exception as error:
            reason = str(error) if isinstance(error, HoraeError) else f"{type(error).__name__}: {error}"
            log.warning("a place cannot be watched", watch=poll.place.url, error=reason[:MOST_REASON])
            await self._fail(poll, reason.partition("\n")[0][:MOST_REASON])

    async def _fail(self, poll: Poll, reason: str, wait: Micros | None = None) -> None:
        pause = max(poll.place.interval, MIN_RETRY_PAUSE) if wait is None else wait
        try:
            await self._store.change(lambda now: watches.fail(poll, reason, now + pause))
        except StoreUnavailable as error:
            log.warning("a scan was interrupted", watch=poll.place.url, error=error.detail)

    async def _write(self, poll: Poll, listed: Sequence[ObjectVersion]) -> None:
        """Fire object versions that the store did not know when this page was checked.

        Those that it has recorded since are skipped.
        """
        given = [found_object(one, poll) for one in listed]
        new_id, lead = self._env.new_id, self._directory.lead
        room = Room(bounds=self._store.bounds, delays=self._directory.delays, raise_if_full=True)
        try:
            done: IntakeResult = await self._store.change(
                lambda now: watches.record_found(poll, given, lead, self._check, new_id, now, room)
            )
        except OverQuota:
            if len(listed) == 1:
                raise
            for one in listed:  # one by one, until the quota has no room
                await self._write(poll, [one])
            return
        self._store.created(done.parcels)
        now = self._env.now()
        events = [creation_event(parcel, now) for parcel in done.parcels[:20]]
        self._hints.send(Hint(lanes=done.lanes, wake_at=done.wake_at, events=events))
        if done.blocked:
            self._topics.blocked(None)


class Scan:
    """One scan of a place, page by page, so that the memory it needs does not grow with the number of objects.

    The lease of the place is renewed meanwhile, however long a page takes.
    """

    def __init__(
        self, poll: Poll, env: Env, store: Store, write: Callable[[Poll, Sequence[ObjectVersion]], Awaitable[None]]
    ) -> None:
        self._poll, self._env, self._store, self._write = poll, env, store, write
        self._marks_seen = poll.ready and poll.began_at - poll.counted_at >= FORGET_EVERY

    async def run(self, pages: Pages) -> None:
        """Scan the place. Raises LeaseLost, and any error of the place.

        If parts of it cannot be read, no object is forgotten, and the reason is recorded with the trigger.
        """
        renewing = asyncio.create_task(self._renew())
        objects, trouble = 0, None
        try:
            async for page in pages:
                objects += len(page)
                await self._page(page)
            if self._marks_seen:
                while await self._store.write(lambda: watches.forget(self._poll, 1000)):
                    await self._env.clock.sleep(0)
        except folder.PartlyUnreadable as error:
            trouble = str(error)[:MOST_REASON]
            log.warning("parts of a place cannot be watched", watch=self._poll.place.url, error=trouble)
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
        await self._finish(objects, trouble)

    async def _renew(self) -> None:
        """Renew the lease in time, until it is lost, which the scan notices at its next write."""
        with suppress(LeaseLost):
            while True:
                await self._env.clock.sleep(LEASE / 3 / SECOND)
                with suppress(StoreUnavailable):
                    await self._store.change(lambda now: watches.renew(self._poll, now))

    async def _page(self, page: Sequence[ObjectVersion]) -> None:
        """Fire or remember the new object versions of a page."""
        poll, now = self._poll, self._env.now()
        whole = {one.digest: one for one in page if one.is_settled(poll.place, now) or one.is_silent(poll)}
        known = await self._store.read(lambda: watches.remembered_objects(poll.watch, list(whole)))
        new = [one for digest, one in whole.items() if digest not in known]
        for at in range(0, len(new), BATCH):
            await self._write(poll, new[at : at + BATCH])
        if self._marks_seen and known:
            await self._store.change(lambda now: watches.mark_seen(poll, list(known), now))

    async def _finish(self, objects: int, trouble: str | None) -> None:
        poll = self._poll
        counted_at = poll.counted_at if poll.ready and not self._marks_seen else poll.began_at
        next_at = max(self._env.now(), poll.began_at + poll.place.interval)
        if not await self._store.write(lambda: watches.finish(poll, objects, counted_at, next_at, trouble)):
            raise LeaseLost
