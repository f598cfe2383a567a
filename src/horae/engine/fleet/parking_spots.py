"""The places of a parking lot, in the orders they are looked for: by lanes and load, and by when their wait ends.

What a look costs follows the number of different sets of lanes and of what it finds, not the number of exchanges.
"""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator
from heapq import heappop, heappush, merge
from itertools import count
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.model.executions.slice import Running
from horae.model.fleet.deal import WorkRequest
from horae.model.fleet.protocol import CHANNELS

Lanes = frozenset[int]
Key = tuple[UUID, int]  # session and channel


class ParkedExchange(Struct, frozen=True, kw_only=True):
    """An exchange that waits until a monotonic instant."""

    want: WorkRequest
    until: float

    @property
    def place(self) -> Key:
        return self.want.session, self.want.channel


class ParkingResult(Struct, frozen=True):
    """How the wait ended: with slices, empty, with something stamped by another claim, or with the session's end."""

    decision: Literal["granted", "empty", "taken", "ended", "superseded"]
    granted: list[Running] = []
    draining: bool = False


class ParkingSpot(Struct, eq=False):
    """Where an exchange waits."""

    parked: ParkedExchange
    done: "asyncio.Future[ParkingResult]"
    number: int
    until: float  # sooner than it was parked for, when there is something to tell
    lanes: Lanes = frozenset()


Standing = tuple[float, int, ParkingSpot]  # load and number: the least loaded first, then who came first


class ParkingSpots:
    """Parked exchanges; whoever has a session's lanes changed says so by another version."""

    def __init__(self, lanes_of: Callable[[UUID], Lanes]) -> None:
        self._lanes_of = lanes_of
        self._by_key: dict[Key, ParkingSpot] = {}
        self._free: dict[Lanes, list[Standing]] = {}  # who has idle slots, by what they may take from
        self._ahead: dict[Lanes, list[Standing]] = {}  # who only fetches ahead
        self._ends: list[tuple[float, int, ParkingSpot]] = []  # a heap; those that have left are passed over
        self._numbers = count()
        self._version = -1

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[ParkingSpot]:
        return iter(list(self._by_key.values()))

    def get(self, key: Key) -> ParkingSpot | None:
        return self._by_key.get(key)

    def add(self, parked: ParkedExchange, done: "asyncio.Future[ParkingResult]") -> ParkingSpot:
        """Take a place; whoever has it must have left."""
        place = ParkingSpot(parked, done, next(self._numbers), parked.until)
        self._by_key[parked.place] = place
        self._stand(place)
        self.remind([place], place.until)
        return place

    def remove(self, place: ParkingSpot) -> None:
        """Leave; again: nothing more."""
        if self._by_key.get(place.parked.place) is not place:
            return
        del self._by_key[place.parked.place]
        self._leave(place)
        if len(self._ends) > 64 + 4 * len(self._by_key):  # most have left long before their time
            self._ends = sorted((place.until, place.number, place) for place in self._by_key.values())

    def of(self, session: UUID) -> Iterator[ParkingSpot]:
        """Those of a session."""
        return (place for channel in range(CHANNELS) if (place := self._by_key.get((session, channel))))

    def hasten(self, session: UUID) -> bool:
        """End the waits of a session now; false when it has none."""
        found = list(self.of(session))
        for place in found:
            place.until = 0.0
            self.remind([place], 0.0)
        return bool(found)

    def due(self, now: float) -> list[ParkingSpot]:
        """Those whose wait is over; they keep their places until they are answered."""
        found: dict[int, ParkingSpot] = {}
        while self._ends and self._ends[0][0] <= now:
            place = heappop(self._ends)[2]
            if self._is_here(place):
                found[place.number] = place
        return list(found.values())

    def remind(self, places: list[ParkingSpot], at: float) -> None:
        """Have their waits end at this time too."""
        for place in places:
            heappush(self._ends, (at, next(self._numbers), place))

    def soonest(self) -> float | None:
        """When the next wait ends."""
        while self._ends and not self._is_here(self._ends[0][2]):
            heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def able(self, version: int, has_work: Callable[[WorkRequest, Lanes], bool]) -> Iterator[ParkingSpot]:
        """Those that a claim may bring something, the least loaded first. `version` is that of the lanes."""
        self._keep_up(version)
        free = [line for lanes, line in self._free.items() if has_work(line[0][2].parked.want, lanes)]
        for lanes, line in self._ahead.items():
            if has_work(_ANYTHING, lanes):
                free.append([one for one in line if has_work(one[2].parked.want, lanes)])
        return (place for _, _, place in merge(*free) if not place.done.done())

    def idle(self, version: int, lanes: Collection[int]) -> Iterator[ParkingSpot]:
        """Those with idle slots that may take from one of these lanes, the least loaded first."""
        self._keep_up(version)
        lines = [line for may, line in self._free.items() if not may.isdisjoint(lanes)]
        return (place for _, _, place in merge(*lines) if not place.done.done())

    def _keep_up(self, version: int) -> None:
        if version != self._version:
            self._version = version
            self._stand_anew()

    def _is_here(self, place: ParkingSpot) -> bool:
        return self._by_key.get(place.parked.place) is place

    def _stand(self, place: ParkingSpot) -> None:
        place.lanes = self._lanes_of(place.parked.want.session)
        lines = self._lines(place)
        if lines is not None:
            insort(lines.setdefault(place.lanes, []), _standing(place))

    def _leave(self, place: ParkingSpot) -> None:
        lines = self._lines(place)
        if lines is None:
            return
        line = lines[place.lanes]
        del line[bisect_left(line, _standing(place))]
        if not line:
            del lines[place.lanes]

    def _lines(self, place: ParkingSpot) -> dict[Lanes, list[Standing]] | None:
        """Where it stands; one that wants nothing only waits for news."""
        want = place.parked.want
        if want.free > 0:
            return self._free
        return self._ahead if want.prefetch else None

    def _stand_anew(self) -> None:
        self._free.clear()
        self._ahead.clear()
        for place in self._by_key.values():
            self._stand(place)


_ANYTHING = WorkRequest(session=UUID(int=0), channel=0, n=0, free=1)


def _standing(place: ParkingSpot) -> Standing:
    return place.parked.want.load, place.number, place
