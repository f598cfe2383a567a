"""Scenes of workflows: the transaction that ends the last step before another starts that one, once, in any order."""

from random import Random
from typing import Any
from uuid import UUID

from horae.model.admission.claim_plan import LaneState
from horae.model.fleet.protocol import Exchange
from horae.model.workflows.repeats import Foreach
from horae.model.workflows.waits import Sleep
from horae.store.fleet import exchange
from horae.store.script import Fetch, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import begin as workflow_begin
from horae.store.workflows import cancel as workflow_cancel
from horae.store.workflows import due as workflow_due
from horae.store.workflows import pause as workflow_pause
from tests.races.hold_scenes import held as put_on_hold
from tests.races.scenes import Cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.workflow_world import begin, look, open_all, run, state, step, step_of, steps, workflow
from tests.store_contract.world import TestJob, Worker, World, failed, success


async def held(world: World, count: int) -> dict[str, tuple[Worker, Any]]:
    """Create workers that hold one step each, by its name."""
    found: dict[str, tuple[Worker, Any]] = {}
    for i in range(count):
        w = await world.worker(f"w{i}")
        (slice,) = await w.claim(1)
        found[await step_of(world, slice)] = w, slice
    return found


async def finish(world: World, w: Worker | None = None) -> list[str]:
    """Let everything go on until nothing is left, and return the steps that ran. The moves were a moment ahead of the
    clock.
    """
    names: list[str] = []
    world.clock.advance(10)
    for _ in range(3):
        for _ in range(3):  # stops are executed level by level
            await look(world)
        names += await run(world, w or await world.worker("last"))
    return names


async def diamond(world: World, **spec: Any) -> tuple[TestJob, UUID]:
    """Create a workflow with two steps that can be claimed, and a third that follows both."""
    job = await world.job(**spec)
    flow = await workflow(world, step("b", job), step("c", job), step("d", job, after=("b", "c")))
    return job, await begin(world, flow)


@scene("report / report, two steps before one")
async def _(world: World) -> Scene:
    job, execution = await diamond(world)
    both = await held(world, 2)
    c = Cast(world, job)

    async def check(world: World, *_: Any) -> None:
        assert await steps(world, execution) == {"b": "success", "c": "success", "d": "running"}
        assert await finish(world) == ["d"], "a step was not started once"
        assert await state(world, execution) == "success"

    (w, left), (v, right) = both["b"], both["c"]
    return Scene(left=[c.report(w, success(left))], right=[c.report(v, success(right))], check=check)


@scene("report / report, the last two steps of a workflow")
async def _(world: World) -> Scene:
    job = await world.job()
    execution = await begin(world, await workflow(world, step("b", job), step("c", job)))
    both = await held(world, 2)
    c = Cast(world, job)

    async def check(world: World, *_: Any) -> None:
        assert await state(world, execution) == "success", "a workflow did not end with its last step"

    (w, left), (v, right) = both["b"], both["c"]
    return Scene(left=[c.report(w, success(left))], right=[c.report(v, success(right))], check=check)


@scene("report / report, items of a foreach")
async def _(world: World) -> Scene:
    job = await world.job()
    flow = await workflow(world, step("a", job, foreach=Foreach(items=[1, 2])), step("b", job, after=("a",)))
    execution = await begin(world, flow)
    w, v = await world.worker("w"), await world.worker("v")
    ((left,), (right,)) = (await w.claim(1), await v.claim(1))
    c = Cast(world, job)

    async def check(world: World, *_: Any) -> None:
        assert await steps(world, execution) == {"a": "success", "b": "running"}, "an item was not counted"

    return Scene(left=[c.report(w, success(left))], right=[c.report(v, success(right))], check=check)


@scene("report / rescue, two steps before one")
async def _(world: World) -> Scene:
    job = await world.job(delivery="at-most-once")
    flow = await workflow(
        world, step("b", job), step("c", job), step("d", job, after=("b", "c"), join="allDone"), on_error="ignore"
    )
    execution = await begin(world, flow)
    both = await held(world, 2)
    (w, left), (v, _) = both["b"], both["c"]
    await v.lose()
    c = Cast(world, job)

    async def check(world: World, *_: Any) -> None:
        assert await steps(world, execution) == {"b": "success", "c": "failed", "d": "running"}
        assert await finish(world) == ["d"], "a lost step did not go on"

    return Scene(left=[c.report(w, success(left))], right=[c.rescue(v)], check=check)


@scene("hold / report of a step that another follows at once")
async def _(world: World) -> Scene:
    job = await world.job()
    await begin(world, await workflow(world, step("a", job), step("b", job, after=("a",))))
    w = await world.worker()
    (slice,) = await w.claim(1)
    c = Cast(world, job)
    head = w.head(Exchange(channel=0, n=2, free=1, outcomes=[success(slice)]), frozenset({job.lane}))

    def script() -> Any:
        """Report by a server that believes all queues to be empty."""
        return exchange.exchange(
            [head], [], frozenset(), {}, c.now, Random(7), c.new_id,
            lambda lanes: [LaneState(lane=lane, low=low) for lane, low in lanes.items()],
        )  # fmt: skip

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        running = await world.rows("SELECT parcel FROM running")
        assert {row[0] for row in running} <= {row[0] for row in left[-1]}, "a step was started under a hold"

    def look() -> Script[Any]:
        return (yield Fetch(Statement("test", "SELECT parcel FROM running")))

    return Scene(left=[put_on_hold(c)[0], Move("look", look)], right=[Move("exchange", script)], check=check)


@scene("report of a step / cancel of its workflow")
async def _(world: World) -> Scene:
    job = await world.job()
    execution = await begin(world, await workflow(world, step("a", job), step("b", job, after=("a",))))
    w = await world.worker()
    (slice,) = await w.claim(1)
    c = Cast(world, job)
    cancel = Move("cancel", lambda: workflow_cancel.cancel(execution, "no", c.new_id, c.now, Consequences()))

    async def check(world: World, *_: Any) -> None:
        assert await finish(world) == [], "a step of a cancelled workflow ran"
        assert await state(world, execution) == "cancelled"

    return Scene(left=[c.report(w, success(slice))], right=[cancel], check=check)


@scene("report of the last step / cancel of its workflow")
async def _(world: World) -> Scene:
    job = await world.job()
    execution = await begin(world, await workflow(world, step("a", job)))
    w = await world.worker()
    (slice,) = await w.claim(1)
    c = Cast(world, job)
    cancel = Move("cancel", lambda: workflow_cancel.cancel(execution, "no", c.new_id, c.now, Consequences()))

    async def check(world: World, _: list[Any], right: list[Any]) -> None:
        expected = "success" if right == ["moving"] else "cancelled"
        assert await state(world, execution) == expected, "an end and a cancellation do not agree"

    return Scene(left=[c.report(w, success(slice))], right=[cancel], check=check)


@scene("report of a step / pause of its workflow")
async def _(world: World) -> Scene:
    job = await world.job()
    execution = await begin(world, await workflow(world, step("a", job), step("b", job, after=("a",))))
    w = await world.worker()
    (slice,) = await w.claim(1)
    c = Cast(world, job)
    pause = Move("pause", lambda: workflow_pause.pause(execution, c.new_id, c.now, Consequences()))

    async def check(world: World, *_: Any) -> None:
        assert await world.on("queued") == [], "a paused workflow has queued steps"
        now = world.now()
        assert await world.store.write(lambda: workflow_pause.resume(execution, world.env.new_id, now, Consequences()))
        assert (
            len([slice for slice in await world.on("waiting") if slice.reason != "children"])
            + len(await world.on("queued"))
            == 1
        ), "a resumed workflow did not go on"

    return Scene(left=[c.report(w, success(slice))], right=[pause], check=check)


@scene("begin of a child workflow / cancel of its parent")
async def _(world: World) -> Scene:
    job = await world.job()
    inner = await workflow(world, step("x", job), name="inner")
    execution = await begin(world, await workflow(world, step("a", inner), name="outer"))
    c = Cast(world, inner)
    opening = Move("open", lambda: workflow_begin.open_some(c.views, 9, frozenset(), c.new_id, c.now))
    due = Move("look", lambda: workflow_due.advance_due(9, c.new_id, c.now))
    cancel = Move("cancel", lambda: workflow_cancel.cancel(execution, "no", c.new_id, c.now, Consequences()))

    async def check(world: World, *_: Any) -> None:
        assert await finish(world) == [], "a step of a cancelled workflow's child ran"
        assert await state(world, execution) == "cancelled"
        assert await world.on("waiting") == []

    return Scene(left=[opening, due], right=[cancel], check=check)


@scene("report of a child workflow's step / report of its parent's")
async def _(world: World) -> Scene:
    job = await world.job()
    inner = await workflow(world, step("x", job), name="inner")
    outer = await workflow(world, step("a", inner), step("b", job), step("c", job, after=("a", "b")), name="outer")
    execution = await begin(world, outer)
    await open_all(world)
    await look(world)
    both = await held(world, 2)
    c = Cast(world, job)

    async def check(world: World, *_: Any) -> None:
        assert await steps(world, execution) == {"a": "success", "b": "success", "c": "running"}

    (w, left), (v, right) = both["x"], both["b"]
    return Scene(left=[c.report(w, success(left))], right=[c.report(v, success(right))], check=check)


@scene("report of a step / check of a workflow that is over its time")
async def _(world: World) -> Scene:
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job, after=("a",)), timeout=1)
    execution = await begin(world, flow)
    w = await world.worker()
    (slice,) = await w.claim(1)
    c = Cast(world, job)
    due = Move("look", lambda: workflow_due.advance_due(9, c.new_id, c.now))

    async def check(world: World, *_: Any) -> None:
        assert await finish(world) == [], "a step of a workflow that is over its time ran"
        assert await state(world, execution) == "failed"

    return Scene(left=[c.report(w, success(slice))], right=[due], check=check)


@scene("check / check, a sleep that is over, two servers")
async def _(world: World) -> Scene:
    job = await world.job()
    flow = await workflow(world, step("nap", wait=Sleep(span=1)), step("b", job, after=("nap",)))
    execution = await begin(world, flow)
    c = Cast(world, job)
    due = Move("look", lambda: workflow_due.advance_due(9, c.new_id, c.now))

    async def check(world: World, *_: Any) -> None:
        assert await finish(world) == ["b"], "a sleep did not end once"
        assert await state(world, execution) == "success"

    return Scene(left=[due], right=[due], check=check)


@scene("report of steps of two workflows / the same in the other order")
async def _(world: World) -> Scene:
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job), step("c", job, after=("a", "b")))
    first, second = await begin(world, flow), await begin(world, flow)
    w, v = await world.worker("w"), await world.worker("v")
    mine, others = [], []
    for at, into in ((w, mine), (v, others), (w, mine), (v, others)):
        for slice in await at.claim(1):
            into.append(slice)
    c = Cast(world, job)

    async def check(world: World, *_: Any) -> None:
        for execution in (first, second):
            assert (await steps(world, execution))["c"] == "running", "a step was not started"

    left = c.report(w, *map(success, mine))
    right = c.report(v, *map(success, reversed(others)))
    return Scene(left=[left], right=[right], check=check)


@scene("cancel of a step / report of another")
async def _(world: World) -> Scene:
    job = await world.job()
    flow = await workflow(
        world, step("b", job), step("c", job), step("d", job, after=("b", "c"), join="allDone"), on_error="ignore"
    )
    execution = await begin(world, flow)
    w = await world.worker()
    (slice,) = await w.claim(1)
    (queued,) = await world.on("queued")
    c = Cast(world, job)
    name = await step_of(world, slice)

    async def check(world: World, *_: Any) -> None:
        found = await steps(world, execution)
        assert found.pop(name) == "failed"
        assert sorted(found.values()) == ["cancelled", "running"], "a cancelled step did not go on"

    return Scene(left=[c.report(w, failed(slice))], right=[c.cancel(queued.parcel, queued.lo)], check=check)
