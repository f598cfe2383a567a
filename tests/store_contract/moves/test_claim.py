"""Claim: each queued item is granted to one session, lowest rank first, with a new attempt."""

import asyncio

import pytest

from horae.model.admission.claim_plan import LaneState
from horae.model.definitions.retry import RetryPolicy
from horae.model.fleet.protocol import MAX_EXCHANGE
from tests.store_contract.world import World, failed, released, spans, success, suspended


async def test_lower_ranks_are_claimed_first(world: World):
    job = await world.job()
    late = await world.parcel(job, 2, priority=0)
    usual = await world.parcel(job, 2)
    urgent = await world.parcel(job, 2, priority=9)
    w = await world.worker()

    assert [s.parcel for s in await w.claim(6)] == [urgent, usual, late]


async def test_arrival_decides_between_equals(world: World):
    job = await world.job()
    first = await world.parcel(job)
    world.clock.advance(1)
    second = await world.parcel(job)
    w = await world.worker()

    assert [(await w.claim(1))[0].parcel for _ in range(2)] == [first, second]


async def test_a_slice_is_cut_in_place(world: World):
    job = await world.job()
    parcel = await world.parcel(job, 10)
    w = await world.worker()

    assert spans(await w.claim(3)) == [(0, 3)]
    assert spans(await world.on("queued", parcel)) == [(3, 10)]
    assert spans(await w.claim(4)) == [(3, 7)]
    assert spans(await w.claim(99)) == [(7, 10)]
    assert await world.states(parcel) == ["running"] * 10


async def test_a_cut_slice_keeps_its_place_and_its_budgets(world: World):
    job = await world.job()
    await world.parcel(job, 10)
    (before,) = await world.on("queued")
    w = await world.worker()
    await w.claim(3)

    (after,) = await world.on("queued")
    assert (after.rank, after.lane, after.queued_at, after.attempt) == (before.rank, before.lane, before.queued_at, 0)


async def test_slices_of_one_parcel_are_taken_and_cut_apart(world: World):
    parcel = await world.parcel(await world.job(), 6)
    await world.store.cancel(parcel, 2, "")
    w = await world.worker()
    await w.claim(1)
    assert spans(await world.on("queued", parcel)) == [(1, 2), (3, 6)]
    await w.claim(1)
    assert spans(await world.on("queued", parcel)) == [(3, 6)]
    await w.claim(2)
    assert spans(await world.on("queued", parcel)) == [(5, 6)]


async def test_ten_claims_of_one_item_from_one_slice_are_all_served(world: World):
    """On PostgreSQL claims skip locked rows, so an empty claim proves nothing: each claims until it is served."""
    job = await world.job()
    parcel = await world.parcel(job, 10)
    workers = [await world.worker(f"w{n}") for n in range(10)]

    async def until_served(w):
        while not (granted := await w.claim(1)):
            pass
        return granted

    granted = [s for slices in await asyncio.gather(*map(until_served, workers)) for s in slices]

    assert sorted(spans(granted)) == [(n, n + 1) for n in range(10)]
    assert await world.states(parcel) == ["running"] * 10


async def test_no_item_is_granted_twice_to_concurrent_claims(world: World):
    job = await world.job()
    for _ in range(5):
        await world.parcel(job, 20)
    workers = [await world.worker(f"w{n}") for n in range(8)]

    granted = []
    while await world.on("queued"):
        for slices in await asyncio.gather(*(w.claim(7) for w in workers)):
            granted += slices

    items = [(s.parcel, item) for s in granted for item in range(s.lo, s.hi)]
    assert len(items) == len(set(items)) == 100


async def test_every_claim_starts_a_new_attempt(world: World):
    job = await world.job(retry=RetryPolicy(retries=5))
    await world.parcel(job)
    w = await world.worker()

    attempts = []
    for give_back in (released, released, failed):
        (slice,) = await w.claim(1)
        attempts.append(slice.attempt)
        await w.report(give_back(slice), policies=job.policy)
    world.clock.advance(10_000_000)
    await world.store.promote_due(0, 10, lambda *_: 0)
    (slice,) = await w.claim(1)

    assert [*attempts, slice.attempt] == [1, 2, 3, 4]


async def test_a_grant_has_its_session_and_its_time(world: World):
    job = await world.job()
    await world.parcel(job, 2)
    w = await world.worker()
    world.clock.advance(5)
    (slice,) = await w.claim(2, channel=3)

    assert (slice.session, slice.channel, slice.n, slice.granted_at) == (w.session, 3, 1, world.now())
    assert slice.started_at is None
    assert await world.on("running") == [slice]


async def test_only_the_given_lanes_are_read(world: World):
    here, there = await world.job("a", queue="here"), await world.job("b", queue="there")
    await world.parcel(here)
    await world.parcel(there)
    w = await world.worker()

    assert [s.job for s in await w.claim(5, lanes=frozenset({there.lane}))] == [there.id]
    assert await w.claim(5, lanes=frozenset()) == []


async def test_lanes_are_claimed_from_in_their_order(world: World):
    a, b = await world.job("a", queue="a"), await world.job("b", queue="b")
    await world.parcel(a, 3)
    await world.parcel(b, 3)
    w = await world.worker()

    granted = await w.claim(4, views=[LaneState(lane=b.lane), LaneState(lane=a.lane)])
    assert [(s.job, s.hi - s.lo) for s in granted] == [(b.id, 3), (a.id, 1)]


async def test_a_claim_returns_the_least_rank_of_each_lane(world: World):
    job, empty = await world.job("a", queue="a"), await world.job("b", queue="b")
    await world.parcel(job, 2, priority=9)
    await world.parcel(job, 2)
    w = await world.worker()
    ranks = sorted(s.rank for s in await world.on("queued"))

    await w.claim(1, views=[LaneState(lane=empty.lane), LaneState(lane=job.lane)])
    assert w.marks == {empty.lane: None, job.lane: ranks[0]}
    await w.claim(2, views=[LaneState(lane=job.lane)])
    assert w.marks == {job.lane: ranks[1]}
    await w.claim(9, views=[LaneState(lane=job.lane)])
    assert w.marks == {job.lane: None}


async def test_a_low_water_mark_hides_nothing_above_it(world: World):
    job = await world.job()
    await world.parcel(job, priority=9)
    high = await world.parcel(job)
    w = await world.worker()
    (_, second) = sorted(s.rank for s in await world.on("queued"))

    granted = await w.claim(9, views=[LaneState(lane=job.lane, low=second)])
    assert [s.parcel for s in granted] == [high]


async def test_many_small_slices_fill_a_large_room(world: World):
    job = await world.job()
    for _ in range(7):
        await world.parcel(job, 3)
    w = await world.worker()

    granted = await w.claim(20, views=[LaneState(lane=job.lane, mean=100.0)])
    assert sum(s.hi - s.lo for s in granted) == 20


async def test_executions_lost_once_are_claimed_together_with_others(world: World):
    job = await world.job()
    await world.parcel(job, 12)
    await world.do("UPDATE queued SET losses = 1")

    assert spans(await (await world.worker(concurrency=12)).claim(12)) == [(0, 12)]


@pytest.mark.parametrize(("losses", "most"), [(2, 5), (3, 2), (4, 1), (9, 1)])
async def test_executions_lost_twice_are_claimed_in_halves(world: World, losses: int, most: int):
    job = await world.job()
    await world.parcel(job, 12)
    await world.do("UPDATE queued SET losses = $1", losses)
    w = await world.worker(concurrency=10)

    first = await w.claim(10)
    assert spans(first) == [(0, most)]
    assert await w.claim(10, channel=1) == []
    reply = await w.exchange(free=10, outcomes=[success(first[0])])

    assert spans(reply.granted) == [(most, 2 * most)]
    assert w.effects.requeued == {job.lane: first[0].rank}


async def test_a_suspect_waits_for_executions_lost_less_often_and_does_not_block_them(world: World):
    """A claim skips suspects, even if there are many of them."""
    job = await world.job()
    twice = await world.parcel(job, 4)
    await world.do("UPDATE queued SET losses = 2")
    w = await world.worker(concurrency=8)
    (first,) = await w.claim(3)
    for _ in range(5):
        await world.parcel(job)
    await world.do("UPDATE queued SET losses = 4, rank = rank - 1000000 WHERE parcel <> $1", twice)

    (second,) = await w.claim(5)
    assert (second.parcel, second.lo, second.hi) == (twice, 3, 4)
    (third,) = (await w.exchange(free=8, outcomes=[success(first), success(second)])).granted
    assert (third.losses, third.hi - third.lo) == (4, 1)


async def test_a_session_that_holds_a_suspect_is_not_served_while_it_waits(world: World):
    job = await world.job()
    await world.parcel(job, 2)
    await world.do("UPDATE queued SET losses = 9")
    w, other = await world.worker("w"), await world.worker("other")
    await w.claim(1)

    lanes = frozenset({job.lane})
    waiting = [w.parked(5, lanes, channel=1), other.parked(5, lanes)]
    done = await world.store.claim_for_parked(waiting, await world.views(), frozenset())
    assert [s.session for s in done.running] == [other.session]
    again = await world.store.claim_for_parked([w.parked(5, lanes, channel=1)], await world.views(), frozenset())
    assert (again.running, again.lanes, again.suspects) == ([], {job.lane: None}, frozenset())


async def test_executions_behind_suspects_are_claimed(world: World):
    job = await world.job()
    for _ in range(5):
        await world.parcel(job)
    await world.do("UPDATE queued SET losses = 9")
    world.clock.advance(1)
    plain = await world.parcel(job, 2)
    w = await world.worker()

    granted = await w.claim(3)
    assert [s.losses for s in granted] == [9, 0]
    assert spans(await world.on("running", plain)) == [(0, 2)]


async def test_a_claim_reports_lanes_that_wait_for_suspects(world: World):
    job = await world.job()
    await world.parcel(job, 2)
    await world.do("UPDATE queued SET losses = 9")
    w = await world.worker()
    await w.claim(9)
    (left,) = await world.on("queued")

    lanes = frozenset({job.lane})
    done = await world.store.claim_for_parked([w.parked(5, lanes)], await world.views(), frozenset())
    assert (done.running, done.lanes, done.suspects) == ([], {job.lane: left.rank}, lanes)


async def test_an_answer_holds_no_more_than_an_exchange_may(world: World):
    job = await world.job()
    await world.parcel(job, 100)
    await world.parcel(job, 100)
    await world.do("UPDATE queued SET width = 10000")
    w = await world.worker()

    for _ in range(4):
        granted = await w.claim(1000)
        assert 0 < sum((s.hi - s.lo) * s.width for s in granted) <= MAX_EXCHANGE
    assert await world.on("queued") == []


async def test_an_item_larger_than_an_exchange_is_granted_alone(world: World):
    job = await world.job()
    for _ in range(3):
        await world.parcel(job)
    await world.do("UPDATE queued SET width = 1048576")
    w = await world.worker()

    for left in (2, 1, 0):
        assert len(await w.claim(64)) == 1
        assert len(await world.on("queued")) == left
        assert (w.marks[job.lane] is not None) == bool(left)


async def test_each_of_several_answers_has_its_own_room(world: World):
    job = await world.job()
    await world.parcel(job, 100)
    await world.do("UPDATE queued SET width = 100000")
    one, two = await world.worker("one"), await world.worker("two")

    lanes = frozenset({job.lane})
    done = await world.store.claim_for_parked(
        [one.parked(64, lanes), two.parked(64, lanes)], await world.views(), frozenset()
    )
    assert sorted(s.hi - s.lo for s in done.running) == [5, 5]


async def test_a_slice_keeps_the_width_of_its_items_on_every_shelf(world: World):
    job = await world.job(retry=RetryPolicy(retries=3))
    await world.parcel(job, 4)
    (queued,) = await world.on("queued")
    assert queued.width == len(b'{"i":0}')
    w = await world.worker()
    (slice,) = await w.claim(4)
    await w.report(released(slice, 0, 1), failed(slice, 1, 2), suspended(slice, 5, 2, 3), policies=job.policy)
    await w.lose()
    await world.store.rescue(w.session, 10)

    everywhere = [s for shelf in ("waiting", "queued", "running") for s in await world.on(shelf)]
    assert [(s.hi - s.lo, s.width) for s in everywhere] == [(1, queued.width)] * 4


async def test_lanes_with_nothing_to_prefetch_are_not_read(world: World):
    a, b = await world.job("a", queue="a"), await world.job("b", queue="b")
    await world.parcel(a, 3)
    await world.parcel(b, 3)
    w = await world.worker()
    views = [LaneState(lane=a.lane, jobs=frozenset({a.id})), LaneState(lane=b.lane, jobs=frozenset({b.id}))]

    reply = await w.exchange(prefetch={b.id: 2}, views=views)
    assert [(s.job, s.hi - s.lo) for s in reply.granted] == [(b.id, 2)]
    assert w.marks.keys() == {b.lane}


async def test_the_bound_of_suspects_holds_across_lanes_and_rounds_of_a_claim(world: World):
    one, two = await world.job("a", queue="a"), await world.job("b", queue="b")
    for job in (one, one, two, two):
        await world.parcel(job)
    await world.do("UPDATE queued SET losses = 2")
    plain = await world.parcel(two, 2)
    w = await world.worker(concurrency=6)
    views = [LaneState(lane=job.lane, mean=100.0) for job in (one, two)]

    granted = await w.claim(9, views=views)
    assert sum(s.losses == 2 for s in granted) == 3
    assert all(s.parcel == plain for s in granted if not s.losses)


async def test_paused_jobs_are_set_aside_and_the_rest_goes_on(world: World):
    paused, other = await world.job("a"), await world.job("b")
    held = await world.parcel(paused, 3)
    free = await world.parcel(other, 2)
    w = await world.worker()

    granted = await w.claim(9, paused=frozenset({paused.id}))

    assert [s.parcel for s in granted] == [free]
    assert await world.states(held) == ["waiting"] * 3
    (waits,) = await world.on("waiting")
    assert (waits.reason, waits.wake_at, waits.gate) == ("paused", None, f"job:{paused.id}")


async def test_an_opened_gate_queues_its_slices(world: World):
    job, other = await world.job("a"), await world.job("b")
    held, also = await world.parcel(job, 3), await world.parcel(other)
    w = await world.worker()
    await w.claim(9, paused=frozenset({job.id, other.id}))

    opened = await world.store.open_gate(job.id, 100, lambda queue, due, *_: due)

    assert opened.rows == 1
    assert await world.states(held) == ["queued"] * 3
    assert await world.states(also) == ["waiting"]
    assert (await w.claim(3))[0].parcel == held


async def test_a_gate_left_open_is_found(world: World):
    job, paused = await world.job("a"), await world.job("b")
    await world.parcel(job)
    await world.parcel(paused)
    await world.do("UPDATE jobs SET state = 'paused' WHERE id = $1", paused.id)
    w = await world.worker()
    await w.claim(9, paused=frozenset({job.id, paused.id}))

    assert await world.store.gates_left_open() == [job.id]


async def test_occupied_lanes_are_found_with_their_least_rank(world: World):
    one, two = await world.job("a", queue="a"), await world.job("b", queue="b")
    assert await world.store.occupied() == {}
    await world.parcel(one)
    await world.parcel(one, priority=9)
    await world.parcel(two)

    least = {}
    for s in await world.on("queued"):
        least[s.lane] = min(s.rank, least.get(s.lane, s.rank))
    assert await world.store.occupied() == least
    assert set(least) == {one.lane, two.lane}
