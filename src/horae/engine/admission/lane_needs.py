"""The needs of lanes: which lanes need more than a slot of a worker, and which hold executions only temporarily."""

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from horae.model.admission.claim_plan import WorkerGroup
from horae.model.admission.placement.placement import Cost, Requirements, read_needs
from horae.model.fleet.deal import WorkRequest
from horae.store.admission.lanes import Lane


class LaneNeeds:
    """The requirements of all lanes. A lane without needs is in `terms` only."""

    def __init__(self, occupied: Mapping[int, int]) -> None:
        """`occupied` is the directory's own mapping of occupied lanes to their lowest ranks."""
        self._occupied = occupied
        self.terms: dict[int, Requirements] = {}
        self.costs: dict[int, Cost] = {}  # lane -> cost of an execution; only lanes where it is more than a slot
        self.spread: dict[int, WorkerGroup] = {}  # lane -> the workers over which its executions must be spread
        self.reserved: Mapping[UUID, int] = {}  # session -> the lane for which it is reserved
        self._temporary: set[int] = set()  # lanes that executions leave after a while for a lane with fewer needs

    def replace_lanes(self, lanes: Iterable[Lane], queues: Mapping[int, str]) -> None:
        """Replace all lanes; `queues` has the names of their queues."""
        self.terms, self.costs, self.spread, self._temporary = {}, {}, {}, set()
        for lane in lanes:
            self.add(lane, queues[lane.queue])

    def add(self, lane: Lane, queue: str) -> None:
        """Add a lane, or replace it."""
        terms = self.terms[lane.id] = read_needs(lane.needs)
        if terms.cost:
            self.costs[lane.id] = terms.cost
        if terms.spread:
            self.spread[lane.id] = WorkerGroup(queue, terms)
        if terms.is_temporary:
            self._temporary.add(lane.id)

    def affords(self, want: WorkRequest, lanes: frozenset[int]) -> bool:
        """Return whether a worker's request has room for an execution of one of these lanes."""
        if not self.costs:
            return True
        occupied = lanes.intersection(self._occupied)
        return any((cost := self.costs.get(lane)) is None or cost.times(want.free, want.room) > 0 for lane in occupied)

    def has_costly(self, lanes: frozenset[int]) -> bool:
        """Return whether one of these lanes is occupied and takes more than a slot for an execution."""
        return any(lane in lanes and lane in self._occupied for lane in self.costs)

    def plain_lanes(self, lanes: frozenset[int]) -> frozenset[int]:
        """Return those of the lanes whose executions take one slot of any worker, so that their order is free."""
        return lanes.difference(self.costs, self.spread) if self.costs or self.spread else lanes

    def has_temporary(self, lanes: Collection[int]) -> bool:
        """Return whether one of these lanes holds its executions only temporarily."""
        return bool(self._temporary) and not self._temporary.isdisjoint(lanes)

    def occupied_costly(self) -> list[int]:
        """Return the occupied lanes whose executions take more than a slot."""
        return [lane for lane in self.costs if lane in self._occupied]

    def occupied_temporary(self) -> list[int]:
        """Return the occupied lanes that hold their executions only temporarily."""
        return sorted(self._temporary.intersection(self._occupied))
