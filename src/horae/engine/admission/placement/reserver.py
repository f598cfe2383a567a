"""The reserver: keeps workers free for large executions, so that small ones do not pass them forever."""

from collections.abc import Iterable
from uuid import UUID

from horae.engine.definitions.directory import LocalDirectory
from horae.engine.fleet.worker_offers import WorkerOffers, able_offers
from horae.engine.fleet.workers import used_resources
from horae.engine.service import Alarm, Wait
from horae.env import Env
from horae.model.admission.placement.labels import SLOTS
from horae.model.admission.placement.placement import capacity_of
from horae.model.admission.placement.reservation import REST, SessionLoad, choose_reservations, is_futile, is_over
from horae.store.admission.lanes import Lane
from horae.store.admission.placement import reserve
from horae.store.admission.placement.reserve import LaneReservations
from horae.store.contract import Store
from horae.store.fleet import sessions

INTERVAL = 1.0  # seconds between two checks


class Reserver:
    """Reserves workers for executions that were passed over for too long. Every server respects the reservations."""

    name = "reserver"

    def __init__(self, env: Env, store: Store, directory: LocalDirectory, offers: WorkerOffers) -> None:
        self._env, self._store, self._directory, self._offers = env, store, directory, offers
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Check the first execution of each occupied lane whose executions take more than a slot."""
        known = map(self._directory.lanes.__getitem__, self._directory.lane_needs.occupied_costly())
        lanes = {lane.id: lane for lane in known if lane.queue not in self._directory.held}
        if not lanes and not self._directory.lane_needs.reserved:
            return INTERVAL
        passed = await self._store.read(lambda: reserve.read_reservations(lanes))
        if await self._change(lanes, passed):
            passed = await self._store.read(lambda: reserve.read_reservations(lanes))
        self._directory.reserve(
            {reservation.session: reservation.lane for reservation in passed.reservations if reservation.binds}
        )
        return INTERVAL

    async def _change(self, lanes: dict[int, Lane], passed: LaneReservations) -> bool:
        """End and create reservations; return whether anything changed."""
        now, known = self._env.now(), passed.reservations
        live = await self._live(lanes.values())
        over = [
            reservation for reservation in known if is_over(reservation, passed.heads.get(reservation.lane), live, now)
        ]
        vain = [reservation for reservation in known if reservation not in over and is_futile(reservation, now)]
        kept = [reservation for reservation in known if reservation not in over]
        due = {
            lane_id: head
            for lane_id, head in passed.heads.items()
            if lane_id not in {reservation.lane for reservation in kept}
        }
        new = (
            choose_reservations(due, {lane_id: await self._loads(lanes[lane_id]) for lane_id in due}, kept, now)
            if due
            else []
        )
        if not (over or vain or new):
            return False
        await self._store.write(lambda: reserve.change(over, vain, now + REST, new))
        return True

    async def _live(self, lanes: Iterable[Lane]) -> set[UUID]:
        found: set[UUID] = set()
        for namespace in {lane.namespace for lane in lanes}:
            found.update(offer.session for offer in await self._offers.offers(namespace) if offer.session is not None)
        return found

    async def _loads(self, lane: Lane) -> list[SessionLoad]:
        """Return the load of each worker that is able to run the executions of a lane."""
        queue, terms = self._directory.queues[lane.queue].name, self._directory.lane_needs.terms[lane.id]
        fitting = {
            offer.session: offer for offer in able_offers(await self._offers.offers(lane.namespace), queue, terms)
        }
        ids = [session for session in fitting if session is not None]
        held = await self._store.read(lambda: sessions.held_by_lane(ids))
        slots = {session: capacity_of(fitting[session].capabilities)[SLOTS] for session in ids}
        return [
            SessionLoad(
                session,
                used_resources(slots[session], held[session], self._directory.lane_needs.costs)[SLOTS] / slots[session],
            )
            for session in ids
        ]
