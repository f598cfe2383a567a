"""Parking spots: searches return the same spots in the same order as a full scan."""

import asyncio
from random import Random
from uuid import UUID

import pytest

from horae.engine.fleet.parking_spots import ParkedExchange, ParkingSpots
from horae.model.fleet.deal import WorkRequest

JOB, OTHER = UUID(int=77), UUID(int=78)
EAST, WEST = frozenset({1, 2}), frozenset({3})


def session(n: int) -> UUID:
    return UUID(int=n + 1)


def parked(n, *, channel=0, free=1, prefetch=None, load=0.0, until=5.0):
    want = WorkRequest(session=session(n), channel=channel, n=1, free=free, prefetch=prefetch or {}, load=load)
    return ParkedExchange(want=want, until=until)


class Lot:
    """Parking spots, with a full scan for comparison."""

    def __init__(self, lanes=None):
        self.lanes = {} if lanes is None else lanes
        self.places = ParkingSpots(self.lanes_of)
        self.version = 1
        self.occupied: set[int] = set()
        self.looks = 0

    def lanes_of(self, id):
        return self.lanes.get(id, EAST)

    def add(self, one):
        return self.places.add(one, asyncio.get_running_loop().create_future())

    def has_work(self, want, lanes):
        self.looks += 1
        return not lanes.isdisjoint(self.occupied) and (want.free > 0 or want.prefetch.get(JOB, 0) > 0)

    def able(self):
        return list(self.places.able(self.version, self.has_work))

    def scanned(self):
        found = [
            place
            for place in self.places
            if not place.done.done() and self.has_work(place.parked.want, self.lanes_of(place.parked.want.session))
        ]
        return sorted(found, key=lambda place: (place.parked.want.load, place.number))


async def test_a_search_for_able_spots_does_not_check_every_spot():
    lot = Lot()
    for n in range(1000):
        lot.add(parked(n))
    lot.able()
    lot.occupied, lot.looks = {1}, 0

    assert len(lot.able()) == 1000
    assert lot.looks < 5


async def test_changed_lanes_are_respected():
    lot = Lot()
    place = lot.add(parked(0))
    lot.occupied = {3}
    assert lot.able() == []

    lot.lanes[session(0)], lot.version = WEST, 2
    assert lot.able() == [place]
    assert place.lanes == WEST
    lot.places.remove(place)
    assert lot.able() == []


async def test_waits_end_in_time_and_released_ones_at_once():
    lot = Lot()
    late, soon, asked = (lot.add(parked(n, until=until)) for n, until in enumerate((9.0, 5.0, 9.0)))
    assert lot.places.soonest() == 5.0
    assert lot.places.end_waits(session(2))
    assert lot.places.end_waits(session(2))
    assert not lot.places.end_waits(session(3))

    assert lot.places.due(1.0) == [asked]
    assert lot.places.due(5.0) == [soon]
    lot.places.schedule([soon], 5.0)
    assert lot.places.due(5.0) == [soon]
    lot.places.remove(asked)
    assert lot.places.due(9.0) == [late]
    assert lot.places.soonest() is None


async def test_removed_spots_are_deleted_from_the_heap():
    lot = Lot()
    for n in range(10_000):
        lot.places.remove(lot.add(parked(n)))

    assert len(lot.places) == 0
    assert len(lot.places._ends) < 100


@pytest.mark.parametrize("seed", range(30))
async def test_searches_match_a_full_scan(seed):
    rng = Random(seed)
    lot = Lot({session(n): rng.choice((EAST, WEST, frozenset())) for n in range(12)})
    for _ in range(300):
        match rng.randrange(6):
            case 0 | 1:
                n, channel = rng.randrange(12), rng.randrange(3)
                if old := lot.places.get((session(n), channel)):
                    lot.places.remove(old)
                ahead = rng.choice(({}, {JOB: 3}, {OTHER: 3}, {JOB: 0}))
                load, until = rng.choice((0.0, 0.5, 1.0)), rng.uniform(0, 10)
                one = parked(n, channel=channel, free=rng.randrange(2), prefetch=ahead, load=load, until=until)
                lot.add(one)
            case 2 if len(lot.places):
                place = rng.choice(list(lot.places))
                rng.choice((place.done.cancel, lambda place=place: lot.places.remove(place)))()
            case 3:
                lot.lanes[session(rng.randrange(12))] = rng.choice((EAST, WEST))
                lot.version += 1
            case 4:
                lot.places.end_waits(session(rng.randrange(12)))
            case 5:
                now = rng.uniform(0, 10)
                due = [place for place in lot.places if place.until <= now]
                found = lot.places.due(now)
                assert sorted(p.number for p in found) == sorted(p.number for p in due)
                for place in found:
                    lot.places.remove(place)
        lot.occupied = set(rng.sample(range(1, 4), rng.randrange(3)))
        assert lot.able() == lot.scanned()
        assert lot.places.soonest() == min((place.until for place in lot.places), default=None)
