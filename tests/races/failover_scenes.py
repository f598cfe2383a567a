"""Scenes of a failover: a detached session re-attaches while others claim, rescue it or fail over again."""

from random import Random
from typing import Any

from horae.model.fleet.protocol import CHANNELS, Reattach
from horae.store import epochs
from horae.store.fleet.reattach import reattach
from tests.races.scenes import Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.moves.test_reattach import attachable, fail_over, range_of
from tests.store_contract.world import Worker, World


async def detached(world: World, n: int = 2) -> tuple[Cast, Worker, Any]:
    """Return a detached session that held one slice of n items when the store failed over."""
    c = await cast(world)
    await world.parcel(c.job, n)
    w = await attachable(world)
    (slice,) = await w.claim(n)
    await fail_over(world)
    return c, w, slice


def attaching(c: Cast, w: Worker, *held: Any) -> Move:
    body = Reattach(answered=[w.numbers[channel] for channel in range(CHANNELS)], held=[range_of(s) for s in held])
    return Move("reattach", lambda: reattach(w.session, body, {}, c.now, Random(7), c.new_id))


def failing_over(c: Cast) -> Move:
    return Move("fail_over", lambda: epochs.begin_epoch(c.now, detaches=True))


@scene("reattach / reattach")
async def _(world: World) -> Scene:
    """The worker repeats the call at another server."""
    c, w, slice = await detached(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert [(s.lo, s.hi, s.attempt) for s in await w.holds()] == [(0, 2, 1)]
        assert (await world.store.session(w.session)).state == "live"

    return Scene(left=[attaching(c, w, slice)], right=[attaching(c, w, slice)], check=check)


@scene("reattach / mark_lost, rescue")
async def _(world: World) -> Scene:
    c, w, slice = await detached(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        attached, lost = left[0] is not None, right[0]
        assert attached != lost, "a session was re-attached and ended"
        assert len(await w.holds()) == attached
        assert len(await world.on("queued")) == lost

    ends = [c.mark_lost(w), c.rescue(w, charge=False)]
    return Scene(left=[attaching(c, w, slice)], right=ends, check=check)


@scene("reattach / claim of what goes back")
async def _(world: World) -> Scene:
    c, w, _ = await detached(world)
    other = await world.worker("other")
    return Scene(left=[attaching(c, w)], right=[c.claim(other, 2)], patient="")


@scene("reattach, claim / a new epoch")
async def _(world: World) -> Scene:
    """No session of an earlier epoch gets work in the new epoch."""
    c, w, slice = await detached(world)
    await world.parcel(c.job, 1)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        session = await world.store.session(w.session)
        assert session.state == ("live" if session.epoch == right[0] else "detached")

    return Scene(left=[attaching(c, w, slice), c.claim(w, 1)], right=[failing_over(c)], check=check)
