"""The placer: moves executions to a wider lane when their patience ends or no preferred worker exists.

Executions with an affinity are moved to the lane of the worker that last ran an execution with the same key.
"""

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.fleet.worker_offers import WorkerOffers, able_offers
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Instant
from horae.model.admission.placement.placement import Requirements, relax_needs
from horae.model.base.duration import DAY
from horae.store.admission.lanes import Lane
from horae.store.admission.placement import affinity, relax
from horae.store.admission.placement.relax import LaneMoves
from horae.store.contract import Store

INTERVAL = 1.0  # seconds between checks without a hint
SOON = 0.02  # seconds before executions that another transaction holds are checked again
FORGETS = 3600.0  # seconds between deletions of unused lanes
BATCH = 500  # slices moved in one transaction
# The pause after a check, as a multiple of its duration: a lane with a million slices is checked less often.
REST_FACTOR = 4


class Placer:
    """Moves executions from lanes that hold them only temporarily to other lanes of their queue."""

    name = "placer"

    def __init__(
        self, env: Env, store: Store, directory: LocalDirectory, hints: Hints, offers: WorkerOffers, clock: ClockWatch
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._offers, self._clock = offers, clock
        self._forgets_at = env.clock.monotonic() + FORGETS
        self.alarm = Alarm()
        hints.listen(self._on_hint)

    def _on_hint(self, hint: Hint) -> None:
        if hint.lanes and self._directory.lane_needs.has_temporary(hint.lanes):
            self.alarm.ring()

    async def step(self) -> Wait:
        """Check every occupied lane that holds its executions only temporarily."""
        await self._forget()
        lanes = [self._directory.lanes[lane_id] for lane_id in self._directory.lane_needs.occupied_temporary()]
        if not lanes or not self._clock.trusted:
            return INTERVAL
        begun = self._env.clock.monotonic()
        waits = [await self._check(lane) for lane in lanes]
        rest = REST_FACTOR * (self._env.clock.monotonic() - begun)
        return 0.0 if 0.0 in waits else max(rest, min(INTERVAL, *waits))

    async def _forget(self) -> None:
        """Delete, once an hour, the lanes of single workers (for affinity) that were unused for a day."""
        now = self._env.clock.monotonic()
        if now >= self._forgets_at:
            self._forgets_at = now + FORGETS
            before = self._env.now() - DAY
            await self._store.write(lambda: relax.forget_lanes(before))

    async def _check(self, lane: Lane) -> Wait:
        """Move the executions that must leave a lane now; return the wait until more must leave it."""
        now = self._env.now()
        if self._directory.lane_needs.terms[lane.id].affinity is not None:
            done = await self._store.write(lambda: affinity.direct(lane.id, lane.needs, BATCH, now))
            await self._publish(done)
            return 0.0 if done.rows == BATCH else INTERVAL
        patience = self._directory.lane_needs.terms[lane.id].patience
        offers, queue = await self._offers.offers(lane.namespace), self._directory.queues[lane.queue].name

        def is_offered(terms: Requirements) -> bool:
            return any(able_offers(offers, queue, terms))

        waited = 0 if relax_needs(lane.needs, 0, is_offered) != lane.needs else patience
        moved = await self._move(lane, relax_needs(lane.needs, waited, is_offered), now - waited)
        if moved.rows == BATCH:
            return 0.0
        since = await self._store.read(lambda: relax.longest_wait(lane.id))
        return INTERVAL if since is None else max(SOON, (since + waited - now) / SECOND)

    async def _move(self, lane: Lane, needs: frozenset[str], since: Instant) -> LaneMoves:
        """Move the executions queued since an instant to the lane with these needs, and send a hint."""
        moved = await self._store.write(lambda: relax.relax(lane.id, since, needs, BATCH, self._env.now()))
        await self._publish(moved)
        return moved

    async def _publish(self, moved: LaneMoves) -> None:
        if not moved.lanes.keys() <= self._directory.lanes.keys():
            await self._directory.load()
        self._hints.send(Hint(lanes=moved.lanes, amounts=moved.amounts))
