"""Preemption: which running work gives its place to more urgent work that waits.

Pure: the store reads who waits, who runs and who was asked already, and writes down what is decided here. Whatever is
chosen is asked to stop; its session reports when it has, and it is queued again as it was.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

from msgspec import Struct

from horae.env import Micros

FRONT = 1 << 60  # what preempts stands this far before its rank: the places that are made for it go to nobody else
Cost = Mapping[str, int]
ONE_SLOT: Cost = MappingProxyType({"slots": 1})


class Waiter(Struct, frozen=True, kw_only=True):
    """Items that wait and may take the place of others."""

    parcel: UUID
    lo: int
    hi: int
    lane: int
    rank: int
    priority: int
    cost: Cost = ONE_SLOT  # of each


class WorkerCapacity(Struct, frozen=True, kw_only=True):
    """A live session: the lanes it may take from, and what it has left; below zero when it holds some in advance."""

    session: UUID
    lanes: frozenset[int]
    left: Cost


class Candidate(Struct, frozen=True, kw_only=True):
    """An item that runs and would give its place; `lost` is what it has done since its last step."""

    session: UUID
    parcel: UUID
    item: int
    attempt: int
    priority: int
    lost: Micros
    cost: Cost = ONE_SLOT


class Preemption(Struct, frozen=True):
    """Who is to stop, and who is to have the places that become free."""

    victims: list[Candidate]
    waiters: list[Waiter]


class _Room:
    """What one worker has left, and whom it could stop, as places are given away."""

    def __init__(self, worker: WorkerCapacity, candidates: list[Candidate]) -> None:
        self.lanes = worker.lanes
        self.left = dict(worker.left)
        self.candidates = sorted(candidates, key=_cheapest_first)

    def fits(self, cost: Cost, freed: Iterable[Candidate] = ()) -> bool:
        victims = list(freed)
        return all(
            self.left.get(name, 0) + sum(v.cost.get(name, 0) for v in victims) >= amount
            for name, amount in cost.items()
        )

    def least_victims(self, waiter: Waiter) -> list[Candidate] | None:
        """The fewest and cheapest of less urgent items that make room; None when all of them would not."""
        chosen: list[Candidate] = []
        for candidate in self.candidates:
            if self.fits(waiter.cost, chosen):
                break
            if candidate.priority < waiter.priority:
                chosen.append(candidate)
        if not self.fits(waiter.cost, chosen):
            return None
        for dear in sorted(chosen, key=_cheapest_first, reverse=True):  # what later ones made superfluous goes on
            rest = [candidate for candidate in chosen if candidate is not dear]
            if self.fits(waiter.cost, rest):
                chosen = rest
        return chosen

    def give(self, cost: Cost, freed: Sequence[Candidate] = ()) -> None:
        for victim in freed:
            self.candidates.remove(victim)
            for name, amount in victim.cost.items():
                self.left[name] = self.left.get(name, 0) + amount
        for name, amount in cost.items():
            self.left[name] = self.left.get(name, 0) - amount


def _cheapest_first(candidate: Candidate) -> tuple[int, Micros, UUID, int]:
    return candidate.priority, candidate.lost, candidate.parcel, candidate.item


def choose_victims(
    waiters: Sequence[Waiter], workers: Sequence[WorkerCapacity], candidates: Sequence[Candidate], most: int = 64
) -> Preemption:
    """Whom to stop so that the most urgent waiters can begin: lowest priority first, then least progress lost.

    A waiter that finds a free place needs nobody's. Only what is less urgent than a waiter gives way to it, and no more
    of it than the waiter needs. `most` bounds the items that are looked at.
    """
    by_session: dict[UUID, list[Candidate]] = {}
    for candidate in candidates:
        by_session.setdefault(candidate.session, []).append(candidate)
    rooms = [_Room(worker, by_session.get(worker.session, [])) for worker in workers]
    victims: list[Candidate] = []
    served: list[Waiter] = []
    for waiter in sorted(waiters, key=lambda one: (-one.priority, one.rank, one.parcel, one.lo)):
        able = [room for room in rooms if waiter.lane in room.lanes]
        for _ in range(min(waiter.hi - waiter.lo, most)):
            most -= 1
            stopped = _place(waiter, able)
            if stopped is None:
                break
            victims += stopped
            if stopped and waiter not in served:
                served.append(waiter)
    return Preemption(victims, served)


def _place(waiter: Waiter, rooms: Sequence[_Room]) -> list[Candidate] | None:
    """Give one item a place: a free one, or the one that costs least; None when there is none."""
    for room in rooms:
        if room.fits(waiter.cost):
            room.give(waiter.cost)
            return []
    found = [(victims, room) for room in rooms if (victims := room.least_victims(waiter))]
    if not found:
        return None
    victims, room = min(found, key=lambda one: _price(one[0]))
    room.give(waiter.cost, victims)
    return victims


def _price(victims: Sequence[Candidate]) -> tuple[int, Micros, int]:
    return max(v.priority for v in victims), sum(v.lost for v in victims), len(victims)


def to_front(rank: int) -> int:
    """Where what preempts stands once places are made for it: before all others, in its order among its like."""
    return rank if is_in_front(rank) else rank - FRONT


def is_in_front(rank: int) -> bool:
    return rank < -(FRONT >> 1)
