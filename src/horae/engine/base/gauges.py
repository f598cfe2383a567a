"""Gauges: the numbers of executions that wait, are queued and run now, for users.

Counting reads all shelves. So a count is reused for at least a second, and for at least twenty times as long as it
took. One server of the installation also counts periodically, for the statistics of queue depth over time.
"""

import asyncio
from uuid import UUID

from horae.engine.service import Alarm, Wait
from horae.engine.topics import QueueSample, Topics
from horae.env import SECOND, Env
from horae.store.contract import Store
from horae.store.executions.reads import housekeeping, live_reads
from horae.store.executions.reads.live_reads import LiveCounts

EVERY = 30.0  # seconds between counts for the statistics
TERM = 75 * SECOND  # the time for which one server has the duty to count
FRESH = 1.0  # a count is reused for at least this many seconds
SHARE = 20  # counting takes at most 1/20 of the time


class Gauges:
    """Counts executions by state. As a service, it reports the queue depths to the statistics."""

    name = "gauges"

    def __init__(self, env: Env, store: Store, node: UUID, topics: Topics) -> None:
        self._env, self._store, self._node, self._topics = env, store, node, topics
        self._known: dict[int, LiveCounts] = {}
        self._until = 0.0
        self._counting = asyncio.Lock()
        self.alarm = Alarm()

    async def of(self, namespace: int) -> LiveCounts:
        """Return recent counts of a namespace's executions that have not ended."""
        if self._env.clock.monotonic() >= self._until:
            async with self._counting:
                if self._env.clock.monotonic() >= self._until:
                    await self._count()
        return self._known.get(namespace) or LiveCounts()

    async def _count(self) -> None:
        begun = self._env.clock.monotonic()
        self._known = await self._store.read(live_reads.live_counts)
        now = self._env.clock.monotonic()
        self._until = now + max(FRESH, SHARE * (now - begun))

    async def step(self) -> Wait:
        """Report the queue depths to the statistics, if this server has the duty."""
        now = self._env.now()
        if await self._store.write(lambda: housekeeping.take_duty(self.name, self._node, now, now + TERM)):
            await self._count()
            queued = {namespace: live.queued for namespace, live in self._known.items() if live.queued}
            self._topics.sampled(QueueSample(queued, now))
        return EVERY
