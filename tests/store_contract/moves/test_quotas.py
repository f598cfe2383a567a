"""Quotas: a submission without room is refused whole, and concurrent submissions do not exceed a bound."""

import asyncio

import pytest

from horae.errors import OverQuota
from horae.model.admission.quota import Quota, QuotaBounds, QuotaUsage
from horae.model.executions.submission import Submission
from horae.store.admission import quotas
from tests.store_contract.world import NAMESPACE, TestJob, World, failed

SECOND = 1_000_000


async def submit(world: World, job: TestJob, bounds: QuotaBounds, n: int = 1, **more):
    return await world.store.submit([Submission(executions=world.wanted(job, n, **more))], bounds=bounds)


async def standing(world: World) -> int:
    slices = [*await world.on("queued"), *await world.on("waiting")]
    return sum(s.hi - s.lo for s in slices)


async def test_a_queue_accepts_executions_up_to_its_bound(world: World):
    job, other = await world.job(), await world.job("other", queue="other")
    bounds = QuotaBounds(queues={job.queue: ("default", 5)})
    await submit(world, job, bounds, 3)
    await submit(world, job, bounds, due_at=world.now() + SECOND)
    with pytest.raises(OverQuota, match="maxQueued") as refused:
        await submit(world, job, bounds, 2)
    assert refused.value.fields["retryAfter"] == 1
    await submit(world, job, bounds, 1)
    await submit(world, other, bounds, 10)
    assert await standing(world) == 15


async def test_running_executions_make_room_and_returning_ones_are_not_refused(world: World):
    job = await world.job()
    bounds = QuotaBounds(queues={job.queue: ("default", 2)})
    await submit(world, job, bounds, 2)
    worker = await world.worker()
    await worker.claim(2)
    await submit(world, job, bounds, 2)
    with pytest.raises(OverQuota):
        await submit(world, job, bounds)
    await worker.lose()
    await world.store.rescue(worker.session, 10)
    assert await standing(world) == 4


async def test_a_quota_bounds_the_queued_executions_of_all_queues(world: World):
    job, other = await world.job(), await world.job("other", queue="other")
    bounds = QuotaBounds({NAMESPACE: Quota(queued=3)})
    await submit(world, job, bounds, 2)
    await submit(world, other, bounds, 1)
    for one in (job, other):
        with pytest.raises(OverQuota, match="queued"):
            await submit(world, one, bounds)


async def test_a_repeat_of_a_key_needs_no_room(world: World):
    job = await world.job()
    bounds = QuotaBounds(queues={job.queue: ("default", 1)})
    first = await submit(world, job, bounds, key="a")
    again = await submit(world, job, bounds, key="a")
    assert again.answers[0][0].execution_id == first.answers[0][0].execution_id


async def test_the_bound_holds_for_concurrent_submissions(world: World):
    job = await world.job()
    bounds = QuotaBounds(queues={job.queue: ("default", 5)})
    done = await asyncio.gather(*(submit(world, job, bounds) for _ in range(12)), return_exceptions=True)
    assert sum(isinstance(one, OverQuota) for one in done) == 7
    assert await standing(world) == 5


async def test_submissions_are_paced(world: World):
    job = await world.job()
    bounds = QuotaBounds({NAMESPACE: Quota(submissions_per_second=2)})
    await submit(world, job, bounds, 2)
    with pytest.raises(OverQuota, match="submissionsPerSecond"):
        await submit(world, job, bounds)
    world.clock.advance(SECOND // 2)
    await submit(world, job, bounds)
    with pytest.raises(OverQuota):
        await submit(world, job, bounds)
    assert await standing(world) == 3


async def test_a_used_up_daily_quota_refuses_all_submissions(world: World):
    job = await world.job()
    bounds = QuotaBounds({NAMESPACE: Quota(executions_per_day=1)}, spent={NAMESPACE: "executionsPerDay: 1 of 1"})
    with pytest.raises(OverQuota, match="executionsPerDay"):
        await submit(world, job, bounds)
    assert await world.rows("SELECT id FROM parcels") == []


async def test_usage_adds_up_over_servers_and_days(world: World):
    first, second = world.env.new_id(), world.env.new_id()
    for server, use in (
        (first, QuotaUsage(1, 2, 3, 4)),
        (second, QuotaUsage(10, 20, 30, 40)),
        (first, QuotaUsage(100, 0, 0, 0)),
    ):
        await world.store.write(lambda server=server, use=use: quotas.add_usage(server, {(NAMESPACE, 7): use}))
    await world.store.write(lambda: quotas.add_usage(first, {(NAMESPACE, 8): QuotaUsage(5)}))
    assert await world.store.read(lambda: quotas.used_on(7)) == {NAMESPACE: QuotaUsage(111, 22, 33, 44)}
    days = await world.store.read(lambda: quotas.used_between(NAMESPACE, 7, 8))
    assert days == {7: QuotaUsage(111, 22, 33, 44), 8: QuotaUsage(5)}
    assert not await world.store.write(lambda: quotas.forget_usage(8, 100))
    assert await world.store.read(lambda: quotas.used_on(7)) == {}


async def test_quotas_are_stored(world: World):
    await world.store.change(lambda now: quotas.set_quota(NAMESPACE, Quota(queued=3), now))
    await world.store.change(lambda now: quotas.set_quota(NAMESPACE, Quota(queued=4, running=2), now))
    assert await world.store.read(quotas.all_quotas) == {NAMESPACE: Quota(queued=4, running=2)}
    job = await world.job()
    await world.submit(job, 3)
    worker = await world.worker()
    (granted,) = await worker.claim(1)
    assert await world.store.read(lambda: quotas.count_live(NAMESPACE)) == (2, 0, 1)
    await worker.report(failed(granted))
