"""Limits of queues and namespaces: concurrent claims take no more than there is room for."""

import pytest
from msgspec import structs

from horae.env import SECOND
from horae.model.admission.keys import LIMITED
from horae.model.admission.limits import Limit, namespace_limit, queue_limit
from horae.model.admission.rate import Rate
from horae.model.definitions.retry import RetryPolicy
from horae.store.admission import coarse
from tests.store_contract.world import NAMESPACE, World, failed, rank, spans, success

MINUTE = 60 * SECOND


async def limit(world: World, job, **said):
    await world.store.write(lambda: coarse.put(Limit(**said), queue=job.queue))


async def limited_views(world: World, *names: str):
    return [structs.replace(view, limits=names) for view in await world.views()]


async def test_a_limit_bounds_the_running_executions_of_a_queue(world: World):
    job = await world.job()
    await limit(world, job, concurrency=3)
    await world.submit(job, 10)
    views = await limited_views(world, queue_limit(job.queue))
    one, two = await world.worker("one"), await world.worker("two")
    assert spans(await one.claim(2, views=views)) == [(0, 2)]
    granted = await two.claim(5, views=views)
    assert spans(granted) == [(2, 3)]
    assert granted[0].flags & LIMITED
    assert await one.claim(5, views=views) == []
    await two.report(success(granted[0]))
    assert job.lane in two.effects.requeued
    assert spans(await one.claim(5, views=views)) == [(3, 4)]
    await world.check()


async def test_a_namespace_and_its_queues_are_limited_together(world: World):
    first, second = await world.job("a", queue="default"), await world.job("b", queue="other")
    await world.store.write(lambda: coarse.put(Limit(concurrency=3), namespace=NAMESPACE))
    await limit(world, first, concurrency=2)
    await world.submit(first, 5)
    await world.submit(second, 5)
    names = {
        first.lane: (namespace_limit(NAMESPACE), queue_limit(first.queue)),
        second.lane: (namespace_limit(NAMESPACE),),
    }
    views = [structs.replace(view, limits=names[view.lane]) for view in await world.views() if view.lane in names]
    worker = await world.worker()
    granted = await worker.claim(10, views=views)
    assert sorted((s.job == first.id, s.hi - s.lo) for s in granted) == [(False, 1), (True, 2)]
    await world.check()


async def test_a_server_that_does_not_know_a_limit_claims_nothing(world: World):
    job = await world.job()
    await world.submit(job, 2)
    await limit(world, job, concurrency=1)
    worker = await world.worker()
    assert await worker.claim(5, views=await limited_views(world)) == []
    assert len(await worker.claim(5, views=await limited_views(world, queue_limit(job.queue)))) == 1


async def test_a_hand_over_does_not_bypass_a_limit(world: World):
    job = await world.job()
    await limit(world, job, concurrency=1)
    worker = await world.worker()
    done = await world.hand_over(job, 5, worker.parked(5, frozenset({job.lane})))
    assert done.running == []
    assert spans(await world.on("queued")) == [(0, 5)]


async def test_executions_that_ran_before_the_limit_count(world: World):
    job = await world.job()
    await world.submit(job, 5)
    worker = await world.worker()
    (before,) = await worker.claim(2)
    await limit(world, job, concurrency=2)
    views = await limited_views(world, queue_limit(job.queue))
    assert await worker.claim(5, views=views) == []
    ((name, kind, id),) = await world.store.read(coarse.unready)
    assert await world.store.read(lambda: coarse.unmarked_sessions(kind, id)) == [worker.session]
    await world.store.write(lambda: coarse.mark(worker.session, kind, id))
    await world.store.write(lambda: coarse.set_ready(name))
    assert await world.store.read(coarse.unready) == []
    assert await worker.claim(5, views=views) == []
    await worker.report(success(before, 0, 1))
    assert len(await worker.claim(5, views=views)) == 1


async def test_a_removed_limit_holds_nothing_back(world: World):
    job = await world.job()
    await limit(world, job, concurrency=1)
    await limit(world, job)
    await world.submit(job, 5)
    worker = await world.worker()
    assert spans(await worker.claim(5, views=await limited_views(world, queue_limit(job.queue)))) == [(0, 5)]


async def test_starts_are_paced_and_a_pause_lets_a_burst_through(world: World):
    job = await world.job()
    await limit(world, job, rate=Rate(6, MINUTE, 3))
    await world.submit(job, 50)
    views = await limited_views(world, queue_limit(job.queue))
    worker = await world.worker()
    started = []
    for _ in range(120):
        started += [world.now()] * sum(s.hi - s.lo for s in await worker.claim(100, views=views))
        world.clock.advance(SECOND)
    assert len(started) == 3 + 11
    for i, since in enumerate(started):
        assert all(
            sum(since <= at < since + span for at in started[i:]) <= 3 + span // (10 * SECOND) for span in (MINUTE,)
        )


async def test_a_queue_in_sequence_runs_one_after_another_also_through_retries(world: World):
    first = await world.job("a", retry=RetryPolicy(retries=1, delay=MINUTE, jitter=0))
    second = await world.job("b", needs=("gpu",))
    await limit(world, first, sequence=True)
    a = await world.parcel(first)
    world.clock.advance(SECOND)
    b = await world.parcel(second)
    world.clock.advance(SECOND)
    await world.parcel(first)
    views = await limited_views(world, queue_limit(first.queue))
    worker = await world.worker()
    (slice,) = await worker.claim(5, views=views)
    assert slice.parcel == a
    await worker.report(failed(slice), policies=first.policy)
    assert await worker.claim(5, views=views) == []
    world.clock.advance(2 * MINUTE)
    await world.store.promote_due(0, 100, rank)
    (slice,) = await worker.claim(5, views=views)
    assert slice.parcel == a
    await worker.report(success(slice))
    without = [view for view in views if view.lane != second.lane]
    assert await worker.claim(5, views=without) == []
    (slice,) = await worker.claim(5, views=views)
    assert slice.parcel == b


@pytest.mark.parametrize("lost", [False, True])
async def test_a_full_lane_is_hinted_when_an_execution_ends(world: World, lost):
    job = await world.job(delivery="at-most-once")
    await limit(world, job, concurrency=1)
    await world.submit(job, 2)
    views = await limited_views(world, queue_limit(job.queue))
    worker = await world.worker()
    (slice,) = await worker.claim(5, views=views)
    if lost:
        await worker.lose()
        effects = await world.store.rescue(worker.session, 100)
    else:
        await worker.report(success(slice))
        effects = worker.effects
    assert job.lane in effects.requeued
