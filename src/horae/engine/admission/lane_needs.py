"""Demands: what lanes ask of workers, and so which of them need more than a slot, or do not keep what stands there."""

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from horae.model.admission.claim_plan import WorkerGroup
from horae.model.admission.placement.placement import Cost, Requirements, read_needs
from horae.model.fleet.deal import WorkRequest
from horae.store.admission.lanes import Lane


class LaneNeeds:
    """The terms of all lanes; those that jobs without any are in appear in nothing but `terms`."""

    def __init__(self, heads: Mapping[int, int]) -> None:
        """`heads` are the lanes that have something, as the directory keeps them."""
        self._heads = heads
        self.terms: dict[int, Requirements] = {}
        self.costs: dict[int, Cost] = {}  # of executions, in lanes where they take more than a slot
        self.among: dict[int, WorkerGroup] = {}  # workers that executions are spread over, in lanes where they are
        self.reserved: Mapping[UUID, int] = {}  # sessions that keep their room for one lane
        self._passing: set[int] = set()  # lanes that executions do not stay in

    def know(self, lanes: Iterable[Lane], queues: Mapping[int, str]) -> None:
        """These are all lanes, and the names of their queues."""
        self.terms, self.costs, self.among, self._passing = {}, {}, {}, set()
        for lane in lanes:
            self.add(lane, queues[lane.queue])

    def add(self, lane: Lane, queue: str) -> None:
        """A lane, new or known."""
        terms = self.terms[lane.id] = read_needs(lane.needs)
        if terms.cost:
            self.costs[lane.id] = terms.cost
        if terms.spread:
            self.among[lane.id] = WorkerGroup(queue, terms)
        if terms.is_passing:
            self._passing.add(lane.id)

    def affords(self, want: WorkRequest, lanes: frozenset[int]) -> bool:
        """Whether a want has room for what one of these lanes has, if that takes more than a slot."""
        if not self.costs:
            return True
        occupied = lanes.intersection(self._heads)
        return any((cost := self.costs.get(lane)) is None or cost.times(want.free, want.room) > 0 for lane in occupied)

    def is_costly(self, lanes: frozenset[int]) -> bool:
        """Whether something in these lanes takes more than a slot."""
        return any(lane in lanes and lane in self._heads for lane in self.costs)

    def at_hand(self, lanes: frozenset[int]) -> frozenset[int]:
        """Those of these lanes whose executions may be given out as they come: each takes a slot, whoever runs it."""
        return lanes.difference(self.costs, self.among) if self.costs or self.among else lanes

    def is_passing(self, lanes: Collection[int]) -> bool:
        """Whether executions do not stay in some of these lanes."""
        return bool(self._passing) and not self._passing.isdisjoint(lanes)

    def costly(self) -> list[int]:
        """Lanes that have something, each of which takes more than a slot."""
        return [lane for lane in self.costs if lane in self._heads]

    def passing(self) -> list[int]:
        """Lanes that have something, which does not stay there."""
        return sorted(self._passing.intersection(self._heads))
