"""The first slices of lanes, and prefetched items that a worker holds."""

from horae.model.admission.placement.preempt import to_front
from horae.store.admission.placement import prefetch
from tests.store_contract.world import World, began


async def test_the_first_slices_of_a_lane_are_read_with_the_number_before_a_rank(world: World):
    job = await world.job()
    first = await world.parcel(job, 3)
    world.clock.advance(1000)
    await world.parcel(job, 4)
    low, high = (slice.rank for slice in sorted(await world.on("queued"), key=lambda slice: slice.rank))

    async def told(rank):
        return await world.store.read(lambda: prefetch.fronts_of([(job.lane, rank), (job.lane + 1000, rank)]))

    assert await told(low - 1) == {}
    assert await told(low) == {job.lane: prefetch.LaneFront(low, 3)}
    assert await told(high) == {job.lane: prefetch.LaneFront(low, 7)}
    assert first


async def test_items_held_ready_are_those_without_a_reported_start(world: World):
    job, other = await world.job("a"), await world.job("b", queue="other")
    await world.parcel(job, 5)
    await world.parcel(other, 2)
    w = await world.worker()
    granted = await w.claim(7)
    (mine,) = [slice for slice in granted if slice.queue == job.queue]
    await w.exchange(started=[began(mine, world.now(), 0, 2)])

    async def held(rank, others=False):
        ranges = await world.store.read(lambda: prefetch.held_ready(w.session, job.queue, rank, others))
        return [(range.lo, range.hi, range.attempt) for range in ranges]

    assert await held(mine.rank) == []
    assert await held(mine.rank - 1) == [(2, 5, 1)]
    assert sorted(await held(to_front(mine.rank), others=True)) == [(0, 2, 1), (2, 5, 1)]
