"""Adoption: a job gets a limit of its own, and all its earlier executions come under it, on every shelf."""

import msgspec
from msgspec import structs

from horae.env import SECOND
from horae.model.admission.rate import Rate
from horae.store.admission import adoption, holder_sweep
from tests.store_contract.world import TestJob, World, rank, success

LATER = 3600 * SECOND


async def edit(world: World, job: TestJob, **said) -> None:
    """Edit the limits of a job, and adopt its executions as a server does."""
    spec = msgspec.json.encode(structs.replace(job.spec, **said)).decode()
    await world.do("UPDATE job_versions SET spec = $2 WHERE job = $1", job.id, spec)
    for session in await world.store.read(lambda: adoption.unmarked_sessions(job.id)):
        await world.store.write(lambda: adoption.mark(session, job.id))  # noqa: B023
    while await world.store.change(lambda now: adoption.adopt(job.id, 2, now)):
        world.clock.advance(10)
    await world.store.change(lambda now: holder_sweep.wake_paced(job.id, now))
    await world.store.promote_due(0, 100, rank)


async def test_jobs_with_a_limit_on_themselves_are_listed_if_they_changed_lately(world: World):
    _, limited, rated = [await world.job(name) for name in ("plain", "limited", "rated")]
    for job, said in ((limited, {"concurrency": 2}), (rated, {"rate": Rate(count=1, per=SECOND)})):
        await edit(world, job, **said)
    assert set(await world.store.read(lambda: adoption.limited_since(0, 9))) == {limited.id, rated.id}
    assert await world.store.read(lambda: adoption.limited_since(world.now() + 1, 9)) == []


async def test_running_executions_count_and_queued_ones_are_held_back_in_order(world: World):
    job = await world.job()
    parcels = [await world.parcel(job, priority=level) for level in (9, 9, 1, 5, 7)]
    worker = await world.worker()
    running = await worker.claim(2)
    assert {slice.parcel for slice in running} == set(parcels[:2])

    await edit(world, job, concurrency=2)

    assert await world.on("queued") == []
    assert await worker.claim(5) == []
    for slice, following in zip(running, (parcels[4], parcels[3]), strict=True):
        await worker.report(success(slice))
        (granted,) = await worker.claim(5)
        assert granted.parcel == following
    await world.check()


async def test_partly_running_parcels_and_delayed_executions_come_under_the_limit(world: World):
    job = await world.job()
    some = await world.parcel(job, 4)
    worker = await world.worker()
    (first,) = await worker.claim(1)
    await world.parcel(job, due_at=world.now() + LATER)

    await edit(world, job, concurrency=2)

    (second,) = await worker.claim(5)
    assert (second.parcel, second.hi - second.lo) == (some, 1)
    world.clock.advance(LATER)
    await world.store.promote_due(0, 100, rank)
    assert await worker.claim(5) == []
    await worker.report(success(first), success(second))
    assert sum(slice.hi - slice.lo for slice in await worker.claim(5)) == 2
    await world.check()


async def test_a_rate_paces_executions_that_were_queued_before(world: World):
    job = await world.job()
    await world.parcel(job, 5)
    await edit(world, job, rate=Rate(1, SECOND, 2))

    assert sum(slice.hi - slice.lo for slice in await (await world.worker()).claim(5)) == 2
    await world.check()


async def test_executions_without_a_limit_of_their_job_are_left_alone(world: World):
    job = await world.job()
    parcel = await world.parcel(job, 3)
    await edit(world, job, priority=9)

    assert await world.states(parcel) == ["queued"] * 3
