"""Preemption: the choice of running work that yields to more urgent waiting work.

The functions are pure. The store reads the waiting and running items and the earlier requests, and stores the decision.
A chosen item is asked to stop. When its session reports that it has stopped, it is queued again in its old place.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Micros

FRONT = 1 << 60  # a preempting item's rank moves this far forward, so that no other item takes its place
Cost = Mapping[str, int]
ONE_SLOT: Cost = MappingProxyType({"slots": 1})


class Waiter(Struct, frozen=True, kw_only=True):
    """Waiting items that may preempt others."""

    parcel: UUID
    lo: int
    hi: int
    lane: int
    rank: int
    priority: int
    cost: Cost = ONE_SLOT  # the cost of each execution


class WorkerCapacity(Struct, frozen=True, kw_only=True):
    """A live session: the lanes it may claim from, and its free capacity (negative if it holds prefetched items)."""

    session: UUID
    lanes: frozenset[int]
    left: Cost


class Candidate(Struct, frozen=True, kw_only=True):
    """A running item that may be preempted; `lost` is the time since its start or last durable step."""

    session: UUID
    parcel: UUID
    item: int
    attempt: int
    priority: int
    lost: Micros
    cost: Cost = ONE_SLOT


class Preemption(Struct, frozen=True):
    """The running items to stop (`victims`), and the waiting items that get their slots."""

    victims: list[Candidate]
    waiters: list[Waiter]


class _Room:
    """One worker's free capacity and candidates while places are assigned."""

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
        """Return less urgent items whose end makes room for the waiter: cheap ones, and no more than necessary.

        Return None if even the end of all less urgent items would not make enough room.
        """
        chosen: list[Candidate] = []
        for candidate in self.candidates:
            if self.fits(waiter.cost, chosen):
                break
            if candidate.priority < waiter.priority:
                chosen.append(candidate)
        if not self.fits(waiter.cost, chosen):
            return None
        for dear in sorted(chosen, key=_cheapest_first, reverse=True):  # later choices made some unnecessary
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
    """Choose items to stop so that the most urgent waiters can start: lowest priority first, then least progress lost.

    A waiter with a free place preempts nothing. Only less urgent items yield, and no more than the waiter needs. `most`
    bounds the number of items that are placed.
    """
    by_session: dict[UUID, list[Candidate]] = {}
    for candidate in candidates:
        by_session.setdefault(candidate.session, []).append(candidate)
    rooms = [_Room(worker, by_session.get(worker.session, [])) for worker in workers]
    victims: list[Candidate] = []
    served: list[Waiter] = []
    for waiter in sorted(waiters, key=lambda one: (-one.priority, one.rank, one.parcel, one.lo)):
        able = [room for room in rooms if waiter.lane in room.lanes]
        count = 0  # items that get slots of victims
        for _ in range(min(waiter.hi - waiter.lo, most)):
            most -= 1
            stopped = _place(waiter, able)
            if stopped is None:
                break
            victims += stopped
            count += bool(stopped)
        if count:
            served.append(structs.replace(waiter, hi=waiter.lo + count))
    return Preemption(victims, served)


def _place(waiter: Waiter, rooms: Sequence[_Room]) -> list[Candidate] | None:
    """Give one item a place: a free one, or the cheapest by preemption.

    Return the victims, or None when there is no place.
    """
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
    """Return the rank of a preempting item, which is before all other items; preempting items keep their order."""
    return rank if is_in_front(rank) else rank - FRONT


def is_in_front(rank: int) -> bool:
    return rank < -(FRONT >> 1)
