"""Scenes of placement: a slice that gives up a preferred worker while it is claimed does one or the other, without
waiting.
"""

from typing import Any

from msgspec import structs

from horae.model.admission.keys import EnvelopeKeys, encode_keys
from horae.model.admission.placement.placement import Affinity, Preference, read_needs, without_preferences
from horae.model.base.duration import DAY
from horae.model.executions import submission
from horae.store.admission.placement import affinity, relax
from tests.races.scenes import Cast, cast, replies, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import World, success

WARM = Affinity(key="${params.model}", patience=5_000_000)
PREFERS = (Preference(label="zone=eu", patience=5_000_000),)


async def preferring(world: World) -> tuple[Cast, Move]:
    """Create a job that prefers a label, and the move that gives up the preference of its queued executions."""
    c = await cast(world, prefers=PREFERS)
    needs = next(lane.needs for lane in (await world.store.directory()).lanes if lane.id == c.job.lane)
    return c, Move("relax", lambda: relax.relax(c.job.lane, c.now, without_preferences(needs), 100, c.now))


async def went_one_way(world: World, left: list[Any], right: list[Any]) -> None:
    """Check that each item runs or is queued, and that moved items are in the wider lane or were claimed before."""
    queued, running = await world.on("queued"), await world.on("running")
    assert sum(s.hi - s.lo for s in (*queued, *running)) == 5, "an item is lost or doubled"
    lanes = {lane.id: read_needs(lane.needs) for lane in (await world.store.directory()).lanes}
    moved = sum(s.hi - s.lo for s in queued if not lanes[s.lane].prefers)
    assert moved == sum(sum(done.amounts.values()) for done in left), "a moved execution is missing"


@scene("relax / claim")
async def _(world: World) -> Scene:
    c, move = await preferring(world)
    for n in (2, 3):
        await world.parcel(c.job, n)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await went_one_way(world, left, right)
        granted = sum(s.hi - s.lo for reply in replies(right) for s in reply.granted)
        assert granted == sum(s.hi - s.lo for s in await world.on("running")), "a granted execution does not run"

    return Scene(left=[move], right=[c.claim(w, 3)], check=check, patient="")


@scene("relax / claim for parked exchanges")
async def _(world: World) -> Scene:
    c, move = await preferring(world)
    await world.parcel(c.job, 5)
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=[move], right=[c.serve((a, 1), (b, 1))], check=went_one_way, patient="")


@scene("relax / relax, two servers")
async def _(world: World) -> Scene:
    c, move = await preferring(world)
    await world.job("plain")  # the wider lane exists: its creation is a separate race
    for n in (2, 3):
        await world.parcel(c.job, n)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await went_one_way(world, [*left, *right], [])

    return Scene(left=[move], right=[move], check=check, patient="")


@scene("relax / cancel")
async def _(world: World) -> Scene:
    c, move = await preferring(world)
    parcel = await world.parcel(c.job, 5)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        states = await world.states(parcel)
        ((verdict, _),) = right
        assert states.count("queued") == (4 if verdict == "cancelled" else 5), "a moving execution is retried"

    return Scene(left=[move], right=[c.cancel(parcel, 2)], check=check)


async def warmed(world: World) -> tuple[Cast, Move]:
    """Create a job with an affinity whose key a worker had two days ago, another execution of it, and the move that
    directs it.
    """
    c = await cast(world, affinity=WARM)
    needs = next(lane.needs for lane in (await world.store.directory()).lanes if lane.id == c.job.lane)
    w = await world.worker("w1")
    for _ in range(2):
        await _keyed(c)
        await world.store.write(lambda: affinity.direct(c.job.lane, needs, 100, world.now()))
        await w.claim(1)
    await w.report(*[success(slice) for slice in await w.holds()])
    world.clock.advance(2 * DAY)
    await _keyed(c)
    later = Cast(world, c.job)
    return later, Move("direct", lambda: affinity.direct(c.job.lane, needs, 100, later.now))


async def _keyed(c: Cast) -> None:
    keys = encode_keys(EnvelopeKeys(affinity="a"))
    asked = [structs.replace(e, envelope=structs.replace(e.envelope, keys=keys)) for e in c.world.wanted(c.job, 1)]
    await c.world.store.submit([submission.Submission(executions=asked)])


async def has_a_lane(world: World, left: list[Any], right: list[Any]) -> None:
    """Check that queued slices are in an existing lane."""
    lanes = {lane.id for lane in (await world.store.directory()).lanes}
    assert {slice.lane for slice in await world.on("queued")} <= lanes, "its lane was deleted"


@scene("direct / forget lanes")
async def _(world: World) -> Scene:
    c, move = await warmed(world)
    forget = Move("forget_lanes", lambda: relax.forget_lanes(c.now - DAY))
    return Scene(left=[move], right=[forget], check=has_a_lane)


@scene("direct / direct, two servers")
async def _(world: World) -> Scene:
    c, move = await warmed(world)
    await _keyed(c)
    return Scene(left=[move], right=[move], check=has_a_lane, patient="")


@scene("claim / claim, one affinity")
async def _(world: World) -> Scene:
    c = await cast(world, affinity=WARM)
    for _ in range(2):
        await _keyed(c)
    a, b = await world.worker("a"), await world.worker("b")

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        rows = await world.rows("SELECT worker FROM affinities")
        running = await world.on("running")
        assert len(rows) == bool(running), "one worker is the last of the key"

    return Scene(left=[c.claim(a, 1)], right=[c.claim(b, 1)], check=check)
