"""Archiving: what a namespace does not keep any more is written to a file, and only then forgotten.

The file's row and the end of what is in it are one transaction. A file that was written before a crash and has no row
is litter, and what was in it is archived again.
"""

import asyncio
from uuid import UUID

import msgspec
import structlog

from horae.engine.archive.files import pack, pieces
from horae.engine.artifacts.place import Place
from horae.engine.clockwatch import ClockWatch
from horae.engine.executions import Executions
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Instant, Micros
from horae.errors import HoraeError
from horae.model.ids import execution_id, instant_of
from horae.model.namespace import Outcome, Retention
from horae.store import expiry
from horae.store.contract import Store
from horae.store.moves import archives, artifacts, namespaces, sweep
from horae.store.moves import execution_reads as reads
from horae.store.moves.archives import Archive

LOOK = 30.0
WALK = 600.0  # seconds between walks over all that a namespace holds
TERM = 300 * SECOND
PAGE = 1000  # parcels looked at together
MOST = 20_000  # executions in a file, unless one parcel has more
TOGETHER = 500  # executions read by one statement
log = structlog.get_logger("horae.archive")


class Archiver:
    """Writes what is over to files; whoever holds the duty does it, and nothing is lost or doubled if two do."""

    name = "archiver"

    def __init__(
        self, env: Env, store: Store, node: UUID, retention: Micros, clock: ClockWatch, executions: Executions,
        place: Place,
    ) -> None:  # fmt: skip
        self._env, self._store, self._node, self._retention = env, store, node, retention
        self._clock, self._executions, self._place = clock, executions, place
        self._walked: dict[int, UUID] = {}
        self._walk_at: dict[int, float] = {}
        self.archived = 0  # executions, by this server
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Go on in each namespace of which something is archived."""
        wanted = await self._store.read(namespaces.archived)
        now = self._env.now()
        if not wanted or not self._clock.trusted:
            return LOOK
        if not await self._store.write(lambda: sweep.take_duty("archive", self._node, now, now + TERM)):
            return LOOK
        retention = Retention(self._retention, await self._store.read(namespaces.retentions))
        for namespace, outcomes in wanted.items():
            if self._env.clock.monotonic() >= self._walk_at.get(namespace, 0.0):
                await self._page(namespace, outcomes, retention.only(namespace), now)
        waiting = all(self._env.clock.monotonic() < self._walk_at.get(namespace, 0.0) for namespace in wanted)
        return LOOK if waiting else 0.0

    async def _page(self, namespace: int, outcomes: tuple[Outcome, ...], retention: Retention, now: Instant) -> None:
        """Archive what is over of the parcels that come next."""
        dialect, after = self._store.driver.dialect, self._walked.get(namespace, expiry.START)
        before = now - retention.shortest_of(namespace)
        place, over = await self._store.driver.read(
            lambda: expiry.look(dialect, after, before, retention, now, PAGE), hot=False
        )
        if over and not await self._archive(namespace, outcomes, over):
            self._walk_at[namespace] = self._env.clock.monotonic() + LOOK
            return
        self._walked[namespace] = place or expiry.START
        if place is None:
            self._walk_at[namespace] = self._env.clock.monotonic() + WALK

    async def _archive(self, namespace: int, outcomes: tuple[Outcome, ...], over: list[expiry.Over]) -> bool:
        """Write these parcels to files and forget them; whether all of it could be done."""
        ended = await self._store.read(lambda: archives.items([parcel for parcel, _ in over]))
        ids: dict[UUID, list[UUID]] = {parcel: [] for parcel, _ in over}
        for parcel, lo, hi, state in ended:
            if state in outcomes:
                ids[parcel] += [execution_id(parcel, item) for item in range(lo, hi)]
        batch: list[expiry.Over] = []
        chosen: list[UUID] = []
        for one in over:
            if chosen and len(chosen) + len(ids[one[0]]) > MOST:
                if not await self._put(namespace, batch, chosen):
                    return False
                batch, chosen = [], []
            batch.append(one)
            chosen += ids[one[0]]
        return await self._put(namespace, batch, chosen)

    async def _put(self, namespace: int, over: list[expiry.Over], ids: list[UUID]) -> bool:
        try:
            archive = await self._write(namespace, ids) if ids else None
        except HoraeError:
            raise
        except Exception as error:  # whatever a place that is out of order raises: nothing is forgotten
            log.error("the archive cannot be written", place=self._place.url, error=str(error))
            return False
        done = await self._store.write(lambda: archives.put(self._store.driver.dialect, archive, over))
        self.archived += len(ids) if done else 0
        return done

    async def _write(self, namespace: int, ids: list[UUID]) -> Archive:
        """A file with these executions, the newest first."""
        lines: list[bytes] = []
        for at in range(0, len(ids), TOGETHER):
            some = [(namespace, id) for id in ids[at : at + TOGETHER]]
            found = await self._store.read(lambda: reads.by_ids(some))  # noqa: B023
            if len(found) < len(some):  # what is not in the file must not be forgotten
                raise LookupError(f"{len(some) - len(found)} of {len(some)} executions cannot be read")
            views = await self._executions.views(namespace, [found[one] for one in some], brief=False)
            lines += map(msgspec.json.encode, views)
        id, now = self._env.new_id(), self._env.now()
        content = await asyncio.to_thread(pack, lines[::-1])
        location = f"archive/{namespace}/{id}.jsonl.gz"
        await self._store.write(lambda: artifacts.announce(location, now))
        await self._place.write(location, pieces(content))
        return Archive(
            id=id, namespace=namespace, first_at=instant_of(ids[0]), last_at=instant_of(ids[-1]),
            executions=len(lines), bytes=len(content), location=location,
        )  # fmt: skip
