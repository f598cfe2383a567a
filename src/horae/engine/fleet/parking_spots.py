"""The spots of a parking lot, indexed by lanes and load, and by the end of their wait.

The cost of a search depends on the numbers of results and of different sets of lanes, not on that of exchanges.
"""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator
from heapq import heappop, heappush, merge
from itertools import count
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.model.executions.slice import RunningSlice
from horae.model.fleet.deal import WorkRequest
from horae.model.fleet.protocol import CHANNELS

Lanes = frozenset[int]
Key = tuple[UUID, int]  # session and channel


class ParkedExchange(Struct, frozen=True, kw_only=True):
    """An exchange that waits until a monotonic instant."""

    want: WorkRequest
    until: float

    @property
    def key(self) -> Key:
        return self.want.session, self.want.channel


class ParkingResult(Struct, frozen=True):
    """The result of a wait.

    `granted`: slices were claimed. `empty`: there was no work. `taken`: another transaction has claimed slices for this
    exchange; they must be read from the store. `ended`: the session has ended. `detached`: the store has
    failed over, and the session must be re-attached. `superseded`: the worker repeated the exchange.
    """

    decision: Literal["granted", "empty", "taken", "ended", "detached", "superseded"]
    granted: list[RunningSlice] = []
    draining: bool = False


class ParkingSpot(Struct, eq=False):
    """The spot of a waiting exchange."""

    parked: ParkedExchange
    done: "asyncio.Future[ParkingResult]"
    number: int
    until: float  # earlier than the parked exchange's, if its session was released
    lanes: Lanes = frozenset()


Entry = tuple[float, int, ParkingSpot]  # sorted by load, then by arrival


class ParkingSpots:
    """Parked exchanges.

    Callers pass the directory's version of the lanes. With a new version, the lanes of all sessions are computed anew.
    """

    def __init__(self, lanes_of: Callable[[UUID], Lanes]) -> None:
        self._lanes_of = lanes_of
        self._by_key: dict[Key, ParkingSpot] = {}
        self._free: dict[Lanes, list[Entry]] = {}  # exchanges with idle slots, by their lanes
        self._ahead: dict[Lanes, list[Entry]] = {}  # exchanges that only prefetch
        self._ends: list[tuple[float, int, ParkingSpot]] = []  # a heap; it may contain removed spots
        self._numbers = count()
        self._version = -1

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[ParkingSpot]:
        return iter(list(self._by_key.values()))

    def get(self, key: Key) -> ParkingSpot | None:
        return self._by_key.get(key)

    def add(self, parked: ParkedExchange, done: "asyncio.Future[ParkingResult]") -> ParkingSpot:
        """Add a spot. An earlier exchange on its channel must have been removed."""
        spot = ParkingSpot(parked, done, next(self._numbers), parked.until)
        self._by_key[parked.key] = spot
        self._index(spot)
        self.schedule([spot], spot.until)
        return spot

    def remove(self, spot: ParkingSpot) -> None:
        """Remove a spot, if it is still there."""
        if self._by_key.get(spot.parked.key) is not spot:
            return
        del self._by_key[spot.parked.key]
        self._unindex(spot)
        if len(self._ends) > 64 + 4 * len(self._by_key):  # most entries are of removed spots
            self._ends = sorted((spot.until, spot.number, spot) for spot in self._by_key.values())

    def of_session(self, session: UUID) -> Iterator[ParkingSpot]:
        """Return the spots of a session."""
        return (spot for channel in range(CHANNELS) if (spot := self._by_key.get((session, channel))))

    def end_waits(self, session: UUID) -> bool:
        """End the waits of a session now; return False when it has none."""
        found = list(self.of_session(session))
        for spot in found:
            spot.until = 0.0
            self.schedule([spot], 0.0)
        return bool(found)

    def due(self, now: float) -> list[ParkingSpot]:
        """Return the spots whose wait is over. They stay until they are answered."""
        found: dict[int, ParkingSpot] = {}
        while self._ends and self._ends[0][0] <= now:
            spot = heappop(self._ends)[2]
            if self._is_here(spot):
                found[spot.number] = spot
        return list(found.values())

    def schedule(self, spots: list[ParkingSpot], at: float) -> None:
        """Make `due` return these spots at this time, too."""
        for spot in spots:
            heappush(self._ends, (at, next(self._numbers), spot))

    def soonest(self) -> float | None:
        """Return the end of the next wait."""
        while self._ends and not self._is_here(self._ends[0][2]):
            heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def able(self, version: int, has_work: Callable[[WorkRequest, Lanes], bool]) -> Iterator[ParkingSpot]:
        """Return spots for which a claim may bring something, the least loaded first.

        `version` is the directory's version of the lanes.
        """
        self._refresh(version)
        free = [line for lanes, line in self._free.items() if has_work(line[0][2].parked.want, lanes)]
        for lanes, line in self._ahead.items():
            if has_work(_ANYTHING, lanes):
                free.append([entry for entry in line if has_work(entry[2].parked.want, lanes)])
        return (spot for _, _, spot in merge(*free) if not spot.done.done())

    def idle(self, version: int, lanes: Collection[int]) -> Iterator[ParkingSpot]:
        """Return spots with idle slots that may take from one of these lanes, the least loaded first."""
        self._refresh(version)
        lines = [line for may, line in self._free.items() if not may.isdisjoint(lanes)]
        return (spot for _, _, spot in merge(*lines) if not spot.done.done())

    def _refresh(self, version: int) -> None:
        if version != self._version:
            self._version = version
            self._reindex()

    def _is_here(self, spot: ParkingSpot) -> bool:
        return self._by_key.get(spot.parked.key) is spot

    def _index(self, spot: ParkingSpot) -> None:
        spot.lanes = self._lanes_of(spot.parked.want.session)
        lines = self._lines(spot)
        if lines is not None:
            insort(lines.setdefault(spot.lanes, []), _entry(spot))

    def _unindex(self, spot: ParkingSpot) -> None:
        lines = self._lines(spot)
        if lines is None:
            return
        line = lines[spot.lanes]
        del line[bisect_left(line, _entry(spot))]
        if not line:
            del lines[spot.lanes]

    def _lines(self, spot: ParkingSpot) -> dict[Lanes, list[Entry]] | None:
        """Return the index of a spot; None if it wants no work and only waits for requests."""
        want = spot.parked.want
        if want.free > 0:
            return self._free
        return self._ahead if want.prefetch else None

    def _reindex(self) -> None:
        self._free.clear()
        self._ahead.clear()
        for spot in self._by_key.values():
            self._index(spot)


_ANYTHING = WorkRequest(session=UUID(int=0), channel=0, n=0, free=1)


def _entry(spot: ParkingSpot) -> Entry:
    return spot.parked.want.load, spot.number, spot
