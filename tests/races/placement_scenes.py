"""Scenes of placement: what gives up a preferred worker while somebody claims it goes one way, and waits for nobody."""

from typing import Any

from horae.model.placement import Preference, read_needs, widest
from horae.store.moves import relax
from tests.races.scenes import Cast, cast, replies, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import World

PREFERS = (Preference(label="zone=eu", patience=5_000_000),)


async def preferring(world: World) -> tuple[Cast, Move]:
    """A job that prefers a label, and the move by which what is queued of it gives that up."""
    c = await cast(world, prefers=PREFERS)
    needs = next(lane.needs for lane in (await world.store.directory()).lanes if lane.id == c.job.lane)
    return c, Move("relax", lambda: relax.relax(c.job.lane, c.now, widest(needs), 100, c.now))


async def went_one_way(world: World, left: list[Any], right: list[Any]) -> None:
    """Each item runs, or is queued; what was told to have moved stands in the wider lane or was claimed before."""
    queued, running = await world.on("queued"), await world.on("running")
    assert sum(s.hi - s.lo for s in (*queued, *running)) == 5, "an item is lost or doubled"
    lanes = {lane.id: read_needs(lane.needs) for lane in (await world.store.directory()).lanes}
    moved = sum(s.hi - s.lo for s in queued if not lanes[s.lane].prefers)
    assert moved == sum(sum(done.amounts.values()) for done in left), "what was told to have moved is not there"


@scene("relax / claim")
async def _(world: World) -> Scene:
    c, move = await preferring(world)
    for n in (2, 3):
        await world.parcel(c.job, n)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        await went_one_way(world, left, right)
        granted = sum(s.hi - s.lo for reply in replies(right) for s in reply.granted)
        assert granted == sum(s.hi - s.lo for s in await world.on("running")), "what was granted does not run"

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
    await world.job("plain")  # the wider lane is there: making it is a race of its own
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
        assert states.count("queued") == (4 if verdict == "cancelled" else 5), "what is moving is tried again"

    return Scene(left=[move], right=[c.cancel(parcel, 2)], check=check)
