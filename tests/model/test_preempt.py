"""The choice of victims: least urgent first, then least progress lost, and no more than needed."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model.admission.placement.preempt import (
    Candidate,
    Waiter,
    WorkerCapacity,
    choose_victims,
    is_in_front,
    to_front,
)


def id(number: int) -> UUID:
    return UUID(int=number << 16)


def waiter(priority: int = 9, items: int = 1, *, number: int = 1, lane: int = 1, **cost: int) -> Waiter:
    return Waiter(
        parcel=id(1000 + number), lo=0, hi=items, lane=lane, rank=number, priority=priority, cost=cost or {"slots": 1}
    )


def worker(number: int = 1, slots: int = 0, lanes: tuple[int, ...] = (1,), **left: int) -> WorkerCapacity:
    return WorkerCapacity(session=id(number), lanes=frozenset(lanes), left={"slots": slots, **left})


def runs(number: int, priority: int = 0, lost: int = 0, *, on: int = 1, **cost: int) -> Candidate:
    return Candidate(
        session=id(on), parcel=id(number), item=0, attempt=1, priority=priority, lost=lost, cost=cost or {"slots": 1}
    )


def victims(waiters, workers, candidates):
    return [victim.parcel.int >> 16 for victim in choose_victims(waiters, workers, candidates).victims]


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([runs(1, 3, 5), runs(2, 1, 90), runs(3, 2, 1)], [2]),
        ([runs(1, 1, 50), runs(2, 1, 20), runs(3, 1, 30)], [2]),
        ([runs(1, 9), runs(2, 9)], []),
        ([], []),
    ],
)
def test_the_least_urgent_with_the_least_progress_is_preempted(candidates, expected):
    assert victims([waiter()], [worker()], candidates) == expected


def test_a_waiter_with_a_free_place_preempts_nothing():
    assert victims([waiter(items=2)], [worker(slots=2)], [runs(1)]) == []
    assert victims([waiter(items=3)], [worker(slots=2)], [runs(1), runs(2)]) == [1]


def test_only_items_that_get_slots_of_victims_are_served():
    decided = choose_victims([waiter(items=50)], [worker(slots=1)], [runs(1), runs(2)])

    assert [(one.lo, one.hi) for one in decided.waiters] == [(0, 2)]


def test_the_most_urgent_waiter_is_placed_first():
    decided = choose_victims(
        [waiter(5, number=1), waiter(9, number=2), waiter(7, number=3)], [worker()], [runs(1), runs(2)]
    )

    assert [victim.parcel for victim in decided.victims] == [id(1), id(2)]
    assert [one.priority for one in decided.waiters] == [9, 7]


def test_only_suitable_workers_are_considered():
    workers = [worker(1, lanes=(2,)), worker(2)]

    assert victims([waiter()], workers, [runs(1, on=1), runs(2, 3, on=2)]) == [2]
    assert victims([waiter(lane=3)], workers, [runs(1, on=1), runs(2, on=2)]) == []


def test_prefetched_items_count_against_free_slots():
    assert victims([waiter()], [worker(slots=-2)], [runs(n, lost=n) for n in range(1, 6)]) == [1, 2, 3]
    assert victims([waiter()], [worker(slots=-2)], [runs(1), runs(2)]) == []


def test_a_large_waiter_preempts_several_items_of_one_worker():
    small = [runs(n, lost=n, slots=1, memory=2) for n in (1, 2, 3)]
    large = runs(4, lost=9, slots=1, memory=8)
    wants = waiter(slots=1, memory=7)

    assert victims([wants], [worker(memory=1)], [*small, large]) == [1, 2, 3]
    assert victims([wants], [worker(memory=0)], [*small, large]) == [4]
    assert victims([wants], [worker(memory=0)], small) == []
    assert victims([wants], [worker(1, memory=0), worker(2, memory=0)], [*small, runs(5, memory=8, slots=1, on=2)]) == [
        5
    ]


PLACES = st.lists(
    st.tuples(st.integers(-3, 3), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=6)), max_size=4
)


@given(PLACES, st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), max_size=5))
def test_every_victim_is_necessary(places, wanted):
    """Every victim is less urgent than a served waiter, and without it one waiter fewer would find a place."""
    workers = [worker(i, slots) for i, (slots, _) in enumerate(places, 1)]
    candidates = [
        runs(100 * i + k, priority, lost, on=i)
        for i, (_, held) in enumerate(places, 1)
        for k, (priority, lost) in enumerate(held)
    ]
    waiters = [waiter(priority, items, number=n) for n, (priority, items) in enumerate(wanted)]
    decided = choose_victims(waiters, workers, candidates)

    assert len(set(map(str, decided.victims))) == len(decided.victims)
    assert all(victim.priority < max(one.priority for one in decided.waiters) for victim in decided.victims)
    freed = {one.session: sum(v.session == one.session for v in decided.victims) for one in workers}
    used = sum(max(0, one.left["slots"] + freed[one.session]) for one in workers)
    assert used <= max(sum(max(0, one.left["slots"]) for one in workers), sum(one.hi for one in waiters))


def test_preempting_items_are_first_in_their_own_order():
    ranks = [1_794_734_884_000_000, 1_794_734_885_000_000, -9 << 53]
    front = [to_front(rank) for rank in ranks]

    assert sorted(front) == [to_front(rank) for rank in sorted(ranks)]
    assert all(map(is_in_front, front))
    assert not any(map(is_in_front, ranks))
    assert [to_front(rank) for rank in front] == front
    assert min(front) > -(1 << 62)
