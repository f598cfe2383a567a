"""Recounts: executions whose counts a killed server had not written to the store are counted again from history."""

from uuid import UUID

import structlog

from horae.engine.service import Alarm, Wait
from horae.engine.topics import Topics
from horae.env import SECOND, Env, Instant
from horae.features.statistics.store import recounting
from horae.features.statistics.store.recounting import MINUTE, LostServer
from horae.store.contract import Store

CHECK_EVERY = 10.0  # seconds between two checks for killed servers
SILENCE_LIMIT = 20 * SECOND  # a server that was not seen for longer counts as killed
# A killed server's counts may be missing from so long before it was last seen.
UNWRITTEN_SPAN = 5 * MINUTE
LIFE_AFTER_SEEN = 30 * SECOND  # how long a killed server may have run after it was last seen
# The time after the end of a minute in which all other servers write their counts of this minute.
FLUSH_SPAN = 30 * SECOND
log = structlog.get_logger("horae.engine")


class Recounter:
    """A service that recounts the last minutes of killed servers.

    In a store that only one server uses, this happens before the server counts anything. On PostgreSQL, other servers
    count executions of the same minutes, so a recount waits until they have written these counts.
    """

    name = "recounter"

    def __init__(self, env: Env, store: Store, node: UUID, topics: Topics) -> None:
        self._env, self._store, self._node, self._topics = env, store, node, topics
        self._alone = not store.database.is_shared
        self.alarm = Alarm()

    async def prepare(self) -> None:
        """Recount for former servers of a store that no other server can use, before this server counts anything."""
        if self._alone:
            for lost in await self._store.read(lambda: recounting.lost_servers(self._node, self._env.now())):
                await self._recount(lost, _minute_after(self._env.now()))

    async def step(self) -> Wait:
        """Recount for a killed server when all other servers have written their counts of its last minutes."""
        now = self._env.now()
        gone = await self._store.read(lambda: recounting.lost_servers(self._node, now - SILENCE_LIMIT))
        for lost in gone:
            until = _minute_after(lost.last_seen + LIFE_AFTER_SEEN)
            if now >= until + FLUSH_SPAN:
                await self._recount(lost, until)
        return CHECK_EVERY

    async def _recount(self, lost: LostServer, until: Instant) -> None:
        since = _minute_after(lost.last_seen - UNWRITTEN_SPAN) - MINUTE
        writer = self._env.new_id()
        found = await self._store.read(lambda: recounting.ended_within(since, until))
        jobs = await self._store.write(lambda: recounting.settle(lost, found, since, until, writer))
        if jobs:
            total = sum((counts.ended for counts in jobs.values()), 0)
            log.info("counts that a killed server had not written were restored", server=str(lost.id), executions=total)
            self._topics.failed([job for job, counts in jobs.items() if counts.failed])


def _minute_after(at: Instant) -> Instant:
    return at - at % MINUTE + MINUTE
