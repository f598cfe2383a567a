"""Affinity: executions with a key go to the worker that got the last execution with this key."""

from msgspec import structs

from horae.model.admission.keys import EnvelopeKeys, encode_keys
from horae.model.admission.placement.placement import Affinity, read_needs
from horae.model.base.duration import DAY
from horae.model.executions import submission
from horae.store.admission.placement import affinity, relax
from horae.store.executions.reads import housekeeping
from tests.store_contract.world import TestJob, World, success

WARM = Affinity(key="${params.model}", patience=5_000_000)


async def submit(world: World, job: TestJob, key: str | None, n: int = 1) -> None:
    """Submit executions with a key of affinity."""
    keys = encode_keys(EnvelopeKeys(affinity=key))
    asked = [structs.replace(one, envelope=structs.replace(one.envelope, keys=keys)) for one in world.wanted(job, n)]
    await world.store.submit([submission.Submission(executions=asked)])


async def directed(world: World, job: TestJob, limit: int = 100) -> relax.LaneMoves:
    needs = next(lane.needs for lane in (await world.store.directory()).lanes if lane.id == job.lane)
    return await world.store.write(lambda: affinity.direct(job.lane, needs, limit, world.now()))


async def waits_for(world: World) -> list[list[str]]:
    """Return the labels that queued executions prefer."""
    lanes = {lane.id: read_needs(lane.needs) for lane in (await world.store.directory()).lanes}
    return [[one.label for one in lanes[slice.lane].prefers] for slice in await world.on("queued")]


async def test_a_key_goes_where_it_was_last_and_a_new_one_anywhere(world: World):
    job = await world.job(affinity=WARM)
    await submit(world, job, "a", 2)
    first, second = await world.worker("w1"), await world.worker("w2")
    assert (await directed(world, job)).rows == 1
    assert await waits_for(world) == [[]], "nobody had it"
    held = await first.claim(2)
    await submit(world, job, "a")
    await submit(world, job, "b")
    await submit(world, job, None)
    assert (await directed(world, job)).rows == 3
    assert sorted(await waits_for(world)) == [[], [], ["worker=w1"]]
    await second.claim(3)
    await submit(world, job, "a")
    await directed(world, job)

    assert await waits_for(world) == [["worker=w2"]], "whoever has it now had it last"
    await first.report(*[success(slice) for slice in held])


async def test_keys_are_those_of_one_job(world: World):
    warm, other = await world.job("warm", affinity=WARM), await world.job("other", affinity=WARM)
    await submit(world, warm, "a")
    await directed(world, warm)
    await (await world.worker("w1")).claim(1)
    await submit(world, other, "a")
    await directed(world, other)

    assert await waits_for(world) == [[]]


async def test_no_more_is_sent_at_once_than_asked_for(world: World):
    job = await world.job(affinity=WARM)
    for key in "abc":
        await submit(world, job, key)

    assert [(await directed(world, job, 2)).rows for _ in range(3)] == [2, 1, 0]


async def test_the_worker_of_a_key_is_forgotten_after_a_week(world: World):
    job = await world.job(affinity=WARM)
    await submit(world, job, "a")
    await directed(world, job)
    await (await world.worker("w1")).claim(1)
    world.clock.advance(7 * DAY - 1)
    await world.store.write(lambda: housekeeping.forget_expired(world.now(), 0))
    assert len(await world.rows("SELECT key FROM affinities")) == 1
    world.clock.advance(1)
    await world.store.write(lambda: housekeeping.forget_expired(world.now(), 0))

    assert await world.rows("SELECT key FROM affinities") == []


async def test_lanes_of_workers_are_forgotten_when_nothing_was_sent_there_for_long(world: World):
    job = await world.job(affinity=WARM)
    worker = await world.worker("w1")
    for _ in range(2):
        await submit(world, job, "a")
        await directed(world, job)
        held = await worker.claim(1)
    lanes = await world.all_lanes()
    world.clock.advance(2 * DAY)
    await world.store.write(lambda: relax.forget_lanes(world.now()))
    assert await world.all_lanes() == lanes, "what runs may come back there"
    await worker.report(*[success(slice) for slice in held], *[success(slice) for slice in await worker.holds()])
    await world.store.write(lambda: relax.forget_lanes(world.now() - 3 * DAY))
    assert await world.all_lanes() == lanes, "it was used since"
    await world.store.write(lambda: relax.forget_lanes(world.now()))

    assert len(await world.all_lanes()) == len(lanes) - 1
    assert job.lane in await world.all_lanes()
