"""Rates by key: starts are paced for each value, also after an hour without workers."""

from horae.env import SECOND
from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.limits import KeyLimit, key_name
from horae.model.admission.rate import Rate
from tests.store_contract.world import World, rank, released, success

MINUTE = 60 * SECOND


async def paced(world: World, count: int = 6, burst: int = 2, **more):
    """Create a job with a rate per minute for each customer."""
    job = await world.job(limits=(KeyLimit(key="c", rate=Rate(count, MINUTE, burst), **more),))
    return job, lambda customer: EnvelopeKeys(limits=(key_name(job.id, "c", customer),), rated=True)


async def run(world: World, worker, seconds: int):
    """Claim second by second; return the time of each start, by parcel."""
    started = []
    for _ in range(seconds):
        await world.store.promote_due(0, 1000, rank)
        for slice in await worker.claim(100):
            started += [(slice.parcel, world.now())] * (slice.hi - slice.lo)
            await worker.report(success(slice))
        world.clock.advance(SECOND)
    return started


def most_in(times, span):
    return max(sum(since <= at < since + span for at in times) for since in times)


async def test_starts_of_a_key_are_paced_and_keys_apart(world: World):
    job, customer = await paced(world)
    a = await world.parcel(job, 20, keys=customer("a"))
    b = await world.parcel(job, 3, keys=customer("b"))
    started = await run(world, await world.worker(), 60)
    assert len([p for p, _ in started if p == a]) == 2 + 5
    assert len([p for p, _ in started if p == b]) == 3
    assert most_in([at for p, at in started if p == a], MINUTE) <= 6 + 2
    await world.check()


async def test_an_hour_without_workers_earns_no_more_than_a_burst(world: World):
    job, customer = await paced(world)
    await world.submit(job, 50, keys=customer("a"))
    for _ in range(60):
        await world.store.promote_due(0, 1000, rank)
        world.clock.advance(MINUTE)
    started = await run(world, await world.worker(), 30)
    assert len(started) == 2 + 2
    await world.check()


async def test_an_execution_too_early_for_its_rate_waits_without_a_charge(world: World):
    job, customer = await paced(world, burst=1)
    for _ in range(3):
        await world.submit(job, keys=customer("a"))
    worker = await world.worker()
    assert len(await worker.claim(10)) == 1
    waits = sorted(await world.on("waiting"), key=lambda w: w.wake_at)
    assert [(w.reason, w.wake_at - world.now()) for w in waits] == [("rate", 10 * SECOND), ("rate", 20 * SECOND)]
    await world.check()


async def test_a_handed_back_start_is_charged_again_when_it_starts(world: World):
    job, customer = await paced(world, burst=1)
    await world.submit(job, keys=customer("a"))
    worker = await world.worker()
    (slice,) = await worker.claim(10)
    await worker.report(released(slice))
    assert await worker.claim(10) == []
    world.clock.advance(10 * SECOND)
    await world.store.promote_due(0, 1000, rank)
    assert len(await worker.claim(10)) == 1


async def test_an_execution_that_waits_for_its_rate_does_not_occupy_its_limit(world: World):
    job, customer = await paced(world, burst=1, concurrency=2)
    await world.submit(job, 4, keys=customer("a"))
    worker = await world.worker()
    started = await run(world, worker, 31)
    assert len(started) == 4
    await world.check()
