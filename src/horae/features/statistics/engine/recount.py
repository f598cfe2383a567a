"""Recounts: what a killed server took along of the statistics is counted again, from history."""

from uuid import UUID

import structlog

from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import SECOND, Env, Instant
from horae.features.statistics.store import recounting
from horae.features.statistics.store.recounting import MINUTE, LostServer
from horae.store.contract import Store

LOOK = 10.0
SILENT = 20 * SECOND  # a server not seen for so long is taken for gone
BEFORE = 5 * MINUTE  # what it had not written before it was seen last
AFTER = 30 * SECOND  # how long it may have gone on after that
SETTLED = 30 * SECOND  # by then the other servers have written what they counted of a minute that is over
log = structlog.get_logger("horae.engine")


class Recounter:
    """Recounts the last minutes of servers that were killed, when nobody else counts them any more.

    A store that one process owns is recounted before that process counts anything. On PostgreSQL other servers count
    the same minutes: they are waited for.
    """

    name = "recounter"

    def __init__(self, env: Env, store: Store, node: UUID, topics: Topics) -> None:
        self._env, self._store, self._node, self._topics = env, store, node, topics
        self._alone = not store.driver.is_shared
        self.alarm = Alarm()

    async def prepare(self) -> None:
        """Recount before anything is counted here, where nobody else counts."""
        if self._alone:
            for lost in await self._store.read(lambda: recounting.lost_servers(self._node, self._env.now())):
                await self._recount(lost, _minute_after(self._env.now()))

    async def step(self) -> Wait:
        """Recount what is over for everybody."""
        now = self._env.now()
        gone = await self._store.read(lambda: recounting.lost_servers(self._node, now - SILENT))
        for lost in gone:
            until = _minute_after(lost.last_seen + AFTER)
            if now >= until + SETTLED:
                await self._recount(lost, until)
        return LOOK

    async def _recount(self, lost: LostServer, until: Instant) -> None:
        since = _minute_after(lost.last_seen - BEFORE) - MINUTE
        writer = self._env.new_id()
        found = await self._store.read(lambda: recounting.ended_within(since, until))
        jobs = await self._store.write(lambda: recounting.settle(lost, found, since, until, writer))
        if jobs:
            total = sum((counts.ended for counts in jobs.values()), 0)
            log.info("recounted what a killed server had not written", server=str(lost.id), executions=total)
            self._topics.failed([job for job, counts in jobs.items() if counts.failed])


def _minute_after(at: Instant) -> Instant:
    return at - at % MINUTE + MINUTE
