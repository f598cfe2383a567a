"""A job that is read alone equals the same job in a list, in every state."""

from horae.env import SECOND
from horae.model.definitions.retry import RetryPolicy
from horae.model.triggers.decisions.values import Interval
from horae.store.definitions import job_reads
from horae.store.definitions.job_reads import Activity
from tests.store_contract.world import NAMESPACE, TestJob, World, add_trigger, failed, progress, success


async def doing(world: World, job: TestJob) -> Activity:
    """Return the state of a job, after checking that it is equal by id, by name and in a list."""
    refs: list[job_reads.Ref] = [(NAMESPACE, job.id), (NAMESPACE, job.spec.name), (NAMESPACE, world.env.new_id())]
    found = await world.store.look_up(lambda: job_reads.job_snapshots(refs))
    listed = (await world.store.read(lambda: job_reads.activities([job.id])))[job.id]

    assert found.keys() == set(refs[:2])
    assert found[refs[0]] == found[refs[1]]
    assert found[refs[0]].activity == listed
    return listed


async def test_a_job_is_read_as_it_is_listed(world: World):
    job = await world.job(retry=RetryPolicy(retries=3))
    worker = await world.worker("a")
    assert await doing(world, job) == Activity()

    await world.parcel(job, 2, due_at=world.now() + SECOND)
    assert not (await doing(world, job)).pending

    await world.parcel(job, 3)
    assert (await doing(world, job)).pending

    await worker.claim(3)
    held = await worker.holds()
    await worker.exchange(progress=[progress(held[-1], held[-1].hi - 1, 5.0)])
    running = (await doing(world, job)).newest_running
    assert running is not None
    assert running.percent == 5.0

    await worker.report(*(success(slice) for slice in held))
    assert (await doing(world, job)).newest_ended is not None

    await world.parcel(job, 1)
    await worker.claim(1)
    held = await worker.holds()
    await worker.report(*(failed(slice) for slice in held), policies={(job.id, 1): job.spec.retry})
    assert (await doing(world, job)).pending  # it waits to be tried again

    await world.do("UPDATE waiting SET reason = 'sleep' WHERE reason = 'retry'")
    asleep = await doing(world, job)
    assert asleep.newest_running is not None
    assert asleep.newest_running.started_at is None


async def test_every_timer_of_a_job_is_listed(world: World):
    job, other = await world.job("a"), await world.job("b")
    for every in (60, 30):
        await add_trigger(world, job, Interval(every=every * SECOND, anchor=world.now()))
    await add_trigger(world, other, Interval(every=SECOND, anchor=world.now()))

    at = (await doing(world, job)).next_fire_at

    assert at is not None
    assert world.now() < at <= world.now() + 30 * SECOND


async def test_a_job_of_another_namespace_is_not_found(world: World):
    job = await world.job()

    refs: list[job_reads.Ref] = [(NAMESPACE + 1, job.id), (NAMESPACE + 1, job.spec.name)]

    assert await world.store.look_up(lambda: job_reads.job_snapshots(refs)) == {}
