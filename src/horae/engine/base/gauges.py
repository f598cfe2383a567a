"""Gauges: how much waits, is queued and runs now, for people. Counting costs a pass over the shelves.

Whoever asks has what was counted last, if that is not older than a moment, or than twenty times what it took. Once a
minute one server of all counts, so that there is a line of how much was queued.
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
TERM = 75 * SECOND  # for which one server is the one that counts
FRESH = 1.0  # seconds for which a count serves whoever asks
SHARE = 20  # of the time goes into counting, at most one part


class Gauges:
    """The present. A service: its step has the statistics know it."""

    name = "gauges"

    def __init__(self, env: Env, store: Store, node: UUID, topics: Topics) -> None:
        self._env, self._store, self._node, self._topics = env, store, node, topics
        self._known: dict[int, LiveCounts] = {}
        self._until = 0.0
        self._counting = asyncio.Lock()
        self.alarm = Alarm()

    async def of(self, namespace: int) -> LiveCounts:
        """What of a namespace has not ended, as it was a moment ago."""
        if self._env.clock.monotonic() >= self._until:
            async with self._counting:
                if self._env.clock.monotonic() >= self._until:
                    await self._count()
        return self._known.get(namespace) or LiveCounts()

    async def _count(self) -> None:
        begun = self._env.clock.monotonic()
        self._known = await self._store.read(live_reads.live)
        now = self._env.clock.monotonic()
        self._until = now + max(FRESH, SHARE * (now - begun))

    async def step(self) -> Wait:
        """Have the statistics know how much is queued, if that is for this server to do."""
        now = self._env.now()
        if await self._store.write(lambda: housekeeping.take_duty(self.name, self._node, now, now + TERM)):
            await self._count()
            queued = {id: live.queued for id, live in self._known.items() if live.queued}
            self._topics.sampled(QueueSample(queued, now))
        return EVERY
