"""Reranking: after a change of a queue's policy, the queue's executions are reordered in batches."""

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.service import Alarm, Wait
from horae.env import Env
from horae.model.admission.queue import Queue
from horae.model.base.duration import DAY
from horae.store.admission import queues as moves
from horae.store.contract import Store

BATCH = 500  # slices ordered in one transaction
INTERVAL = 5.0  # seconds between checks without a hint
SETTLED = 3.0  # seconds after which every server uses the new policy; then late arrivals are reordered once more
FORGET_EVERY = 3600.0  # seconds
UNUSED = 7 * DAY  # after this time a share's lane is deleted; a returning share gets a new one
log = structlog.get_logger("horae.engine")


class Reranker:
    """Reorders queues.

    A queue's row holds the policy by which it was ordered, so any server can continue after a crash.
    """

    name = "reranking"

    def __init__(self, env: Env, store: Store, directory: LocalDirectory, hints: Hints) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._ordered_once: dict[int, tuple[int, float]] = {}  # revisions that were ordered once, and when
        self._forgets_at = 0.0  # monotonic time of the next deletion of unused lanes
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.queues:
            self.alarm.ring()

    async def step(self) -> Wait:
        """Reorder every queue whose policy changed, and once more when no server uses the old policy any longer."""
        soonest = INTERVAL
        for queue in [queue for queue in self._directory.queues.values() if queue.ranked < queue.revision]:
            soonest = min(soonest, await self._rerank(queue))
        if self._directory.unknown_lanes():
            await self._directory.load()  # usually these are new lanes that this server has not read yet
            for lane in self._directory.unknown_lanes():
                await self._order_lane(lane, astray=True)
        await self._forget()
        return soonest

    async def _forget(self) -> None:
        """Delete the lanes of shares that were unused for long; there may be a new share for every customer."""
        now = self._env.clock.monotonic()
        if now < self._forgets_at:
            return
        self._forgets_at = now + FORGET_EVERY
        before = self._env.now() - UNUSED
        if await self._store.write(lambda: moves.forget_lanes(before)):
            await self._directory.load()

    async def _rerank(self, queue: Queue) -> float:
        now = self._env.clock.monotonic()
        revision, at = self._ordered_once.get(queue.id, (0, 0.0))
        if revision != queue.revision:
            await self._order_queue(queue)
            self._ordered_once[queue.id] = queue.revision, self._env.clock.monotonic()
            return SETTLED
        if now < at + SETTLED:
            return at + SETTLED - now
        await self._order_queue(queue)
        await self._store.write(lambda: moves.set_ranked(queue.id, queue.revision))
        del self._ordered_once[queue.id]
        await self._directory.load()
        log.info("queue ranked", queue=queue.name, policy=queue.policy.kind)
        return INTERVAL

    async def _order_queue(self, queue: Queue) -> None:
        for lane in await self._store.read(lambda: moves.lanes_of_queue(queue.id)):
            await self._order_lane(lane)

    async def _order_lane(self, lane: int, *, astray: bool = False) -> None:
        """Reorder a lane. An `astray` lane was deleted: its executions move to the lane of their job."""
        at: moves.QueuePosition | None = moves.FIRST
        while at is not None:
            place = at
            done = await self._store.change(
                lambda now: moves.rerank(lane, self._directory.lead, place, BATCH, now, astray=astray)  # noqa: B023
            )
            at = done.next
            if done.lanes:
                self._hints.send(Hint(lanes=done.lanes))
