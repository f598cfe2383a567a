"""Promotion: waiting slices that are due move to the queue, once, in order, and fragments are joined."""

import asyncio

from horae.model.definitions.retry import RetryPolicy
from horae.store.executions.promote import LONG_AGO
from tests.store_contract.world import World, failed, rank, spans, success, suspended

MINUTE = 60_000_000


async def test_due_executions_are_queued_and_others_wait(world: World):
    job = await world.job()
    now = world.now()
    due, later = await world.parcel(job, 3, due_at=now + 5), await world.parcel(job, due_at=now + 6)
    assert (await world.store.promote_due(LONG_AGO, 100, rank)).rows == 0
    world.clock.advance(5)
    done = await world.store.promote_due(LONG_AGO, 100, rank)

    assert (await world.states(due), await world.states(later)) == (["queued"] * 3, ["waiting"])
    (queued,) = await world.on("queued")
    assert (queued.rank, queued.lane, queued.queued_at) == (rank(0, now + 5, 4, None, job.id), job.lane, world.now())
    assert (done.rows, done.lanes, done.slices) == (1, {job.lane: queued.rank}, [queued])


async def test_the_earliest_due_are_promoted_first(world: World):
    job = await world.job()
    now = world.now()
    parcels = [await world.parcel(job, due_at=now + at) for at in (30, 10, 20)]
    world.clock.advance(30)

    order = []
    for _ in range(3):
        done = await world.store.promote_due(LONG_AGO, 1, rank)
        order += [s.parcel for s in done.slices]
    assert order == [parcels[1], parcels[2], parcels[0]]


async def test_promotion_starts_at_the_mark(world: World):
    job = await world.job()
    now = world.now()
    await world.parcel(job, due_at=now + 1)
    above = await world.parcel(job, due_at=now + 2)
    world.clock.advance(9)
    done = await world.store.promote_due(now + 2, 100, rank)

    assert [s.parcel for s in done.slices] == [above]


async def test_neighbours_in_the_same_state_are_joined(world: World):
    job = await world.job(retry=RetryPolicy(retries=3))
    parcel = await world.parcel(job, 6)
    w = await world.worker()
    (slice,) = await w.claim(6)
    for item in (4, 0, 2, 1):
        await w.report(failed(slice, item, item + 1), policies=job.policy)
    await w.report(success(slice, 3, 4), failed(slice, 5, 6), policies=job.policy)
    assert len(await world.on("waiting", parcel)) == 5
    world.clock.advance(MINUTE)
    await world.store.promote_due(LONG_AGO, 100, rank)

    assert spans(await world.on("queued", parcel)) == [(0, 3), (4, 6)]


async def test_a_retry_keeps_its_arrival(world: World):
    job = await world.job(retry=RetryPolicy(retries=3))
    await world.parcel(job)
    (before,) = await world.on("queued")
    w = await world.worker()
    (slice,) = await w.claim()
    await w.report(failed(slice), policies=job.policy)
    world.clock.advance(MINUTE)
    await world.store.promote_due(LONG_AGO, 100, rank)

    (after,) = await world.on("queued")
    assert (after.rank, after.failures, after.attempt) == (before.rank, 1, 1)
    assert after.queued_at == world.now()


async def test_a_sleeping_execution_wakes(world: World):
    parcel = await world.parcel(await world.job(), 2)
    w = await world.worker()
    (slice,) = await w.claim(2)
    await w.report(suspended(slice, world.now() + MINUTE))
    world.clock.advance(MINUTE)
    await world.store.promote_due(LONG_AGO, 100, rank)

    assert await world.states(parcel) == ["queued"] * 2


async def test_executions_at_a_gate_are_not_due(world: World):
    job = await world.job()
    parcel = await world.parcel(job)
    w = await world.worker()
    await w.claim(1, paused=frozenset({job.id}))
    world.clock.advance(MINUTE)

    assert (await world.store.promote_due(LONG_AGO, 100, rank)).rows == 0
    assert await world.states(parcel) == ["waiting"]
    assert await world.store.next_wake() is None


async def test_the_next_wake_up_is_the_earliest(world: World):
    job = await world.job()
    now = world.now()
    for at in (30, 10, 20):
        await world.parcel(job, due_at=now + at)

    assert await world.store.next_wake() == now + 10


async def test_a_gate_opens_in_batches(world: World):
    job = await world.job()
    for _ in range(5):
        await world.parcel(job, 2)
    w = await world.worker()
    await w.claim(99, paused=frozenset({job.id}))

    rows = []
    while (done := await world.store.open_gate(job.id, 2, rank)).rows:
        rows.append(done.rows)
    assert rows == [2, 2, 1]
    assert len(await world.on("queued")) == 5


async def test_concurrent_promoters_promote_each_slice_once(world: World):
    job = await world.job()
    for n in range(20):
        await world.parcel(job, 2, due_at=world.now() + 1 + n % 3)
    world.clock.advance(5)
    done = await asyncio.gather(*(world.store.promote_due(LONG_AGO, 20, rank) for _ in range(5)))

    assert sum(d.rows for d in done) <= 20
    while (more := await world.store.promote_due(LONG_AGO, 20, rank)).rows:
        done.append(more)
    assert sum(d.rows for d in done) == 20
    assert sum(s.hi - s.lo for s in await world.on("queued")) == 40
