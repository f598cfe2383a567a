"""Relaxation: slices that waited for a preferred worker move to a wider lane unchanged; none is lost or doubled."""

import asyncio

from horae.model.admission.placement.placement import Preference, without_preferences
from horae.store.admission.placement import relax
from tests.store_contract.world import World, success

SECOND = 1_000_000
PREFERS = (Preference(label="zone=eu", patience=5 * SECOND),)


async def needs_of(world: World, lane: int) -> frozenset[str]:
    directory = await world.store.directory()
    return next(one.needs for one in directory.lanes if one.id == lane)


async def relaxed(world: World, lane: int, since: int, limit: int = 100) -> relax.LaneMoves:
    needs = without_preferences(await needs_of(world, lane))
    return await world.store.write(lambda: relax.relax(lane, since, needs, limit, world.now()))


async def test_long_waiting_slices_move_to_the_wider_lane_with_rank_and_arrival(world: World):
    job = await world.job(prefers=PREFERS)
    old = await world.parcel(job, 3)
    before = (await world.on("queued", old))[0]
    world.clock.advance(2 * SECOND)
    young = await world.parcel(job)
    assert await world.store.read(lambda: relax.longest_wait(job.lane)) == before.queued_at

    done = await relaxed(world, job.lane, before.queued_at)

    (moved,) = await world.on("queued", old)
    assert await needs_of(world, moved.lane) == {"kind:command"}
    assert (moved.rank, moved.queued_at, moved.lo, moved.hi) == (before.rank, before.queued_at, 0, 3)
    assert (done.rows, done.lanes, done.amounts) == (1, {moved.lane: before.rank}, {moved.lane: 3})
    assert (await world.on("queued", young))[0].lane == job.lane
    assert (await relaxed(world, job.lane, before.queued_at)).rows == 0


async def test_the_wider_lane_is_shared_with_jobs_without_preferences(world: World):
    plain = await world.job("plain")
    job = await world.job("picky", prefers=PREFERS)
    await world.submit(job)
    done = await relaxed(world, job.lane, world.now())

    assert list(done.lanes) == [plain.lane]


async def test_a_move_is_limited_to_the_batch_size(world: World):
    job = await world.job(prefers=PREFERS)
    for _ in range(3):
        await world.parcel(job)

    assert [(await relaxed(world, job.lane, world.now(), 2)).rows for _ in range(3)] == [2, 1, 0]


async def test_claimed_slices_are_not_moved_and_moved_slices_are_claimed_once(world: World):
    job = await world.job(prefers=PREFERS)
    parcels = [await world.parcel(job, 5) for _ in range(6)]
    w = await world.worker()
    await asyncio.gather(w.claim(12), relaxed(world, job.lane, world.now()))
    rest = await w.claim(100)
    held = await w.holds()

    assert rest
    assert sum(s.hi - s.lo for s in held) == 30
    assert sorted({s.parcel for s in held}) == sorted(parcels)
    await w.report(*[success(s) for s in held])
    for parcel in parcels:
        assert await world.states(parcel) == ["success"] * 5
