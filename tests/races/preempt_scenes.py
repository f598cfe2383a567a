"""Scenes of preemption: executions that are asked to give way are running, and only one is asked for each waiter."""

from typing import Any

from horae.model.fleet.protocol import Step
from horae.store.admission.placement import preempt
from horae.store.executions.durable import steps
from tests.races.scenes import Cast, cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, World, released, success


async def contended(world: World, running: int) -> tuple[Cast, Any, Any]:
    """Create a worker that is full of preemptible work, and one execution that preempts."""
    c = await cast(world, preemptible=True, priority=0)
    w = await world.worker(concurrency=running)
    for _ in range(running):
        await world.parcel(c.job)
    slices = await w.claim(running)
    urgent = await world.job("urgent", preempts=True, priority=9)
    await world.parcel(urgent)
    return c, w, slices


def decide(c: Cast) -> Move:
    rules = preempt.PreemptRules(may_take=lambda session: c.lanes)
    return Move("preempt", lambda: preempt.preempt(NAMESPACE, (), frozenset(), rules, c.now))


async def at_most_one(world: World, left: list[Any], right: list[Any]) -> None:
    asked = await world.rows("SELECT parcel, item FROM requests WHERE kind = 'preempt'")
    assert len(asked) <= 1, "more executions give way than wait"


@scene("preempt / preempt")
async def _(world: World) -> Scene:
    c, _, _ = await contended(world, 3)
    return Scene(left=[decide(c)], right=[decide(c)], check=at_most_one)


@scene("preempt / a step, and preempt")
async def _(world: World) -> Scene:
    c, w, slices = await contended(world, 3)
    step = Step(parcel=slices[-1].parcel, item=0, attempt=1, name="half")
    remember = Move("remember", lambda: steps.remember([(w.session, step)], c.now))
    return Scene(left=[decide(c)], right=[remember, decide(c)], check=at_most_one)


@scene("preempt / report of a success")
async def _(world: World) -> Scene:
    c, w, slices = await contended(world, 1)
    return Scene(left=[decide(c)], right=[c.report(w, success(slices[0]))], check=at_most_one)


@scene("preempt / hand-back and claim")
async def _(world: World) -> Scene:
    c, w, slices = await contended(world, 2)
    return Scene(left=[decide(c)], right=[c.report(w, released(slices[0]), free=1)], check=at_most_one)


@scene("preempt / rescue")
async def _(world: World) -> Scene:
    c, w, _ = await contended(world, 2)
    return Scene(left=[decide(c)], right=c.lose(w), check=at_most_one)


@scene("preempt / claim of the preempting execution")
async def _(world: World) -> Scene:
    c, _, _ = await contended(world, 1)
    other = await world.worker("other", concurrency=1)
    return Scene(left=[decide(c)], right=[c.claim(other)], check=at_most_one)
