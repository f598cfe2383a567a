"""A rerun from the failed steps goes on within nested workflows: steps that succeeded there do not run again."""

import pytest

from horae.model.workflows.decisions.values import Call
from horae.model.workflows.repeats import Foreach, Loop
from horae.store.executions.promote import LONG_AGO
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import cancel as workflow_cancel
from tests.store_contract.moves.test_workflow_rerun import giving, rerun
from tests.store_contract.workflow_world import begin, look, open_all, result, run, state, step, steps, workflow
from tests.store_contract.world import World, cancelled, failed, rank


async def ran(world: World, worker, said=None) -> list[str]:
    """Run all steps, including those of nested workflows; return them in the order of their starts."""
    names: list[str] = []
    for _ in range(6):
        await open_all(world)
        await look(world)
        await world.store.promote_due(LONG_AGO, 100, rank)
        names += await run(world, worker, said)
    return names


async def inner(world: World, **more):
    """Create a workflow of two steps, the second with the result of the first."""
    job = await world.job()
    second = step("b", job, params={"got": "${steps.a.result}"})
    return await workflow(world, step("a", job), second, name="inner", output="${steps.a.result}", **more)


async def outer(world: World, **part):
    """Create a workflow with a nested workflow between two other steps."""
    within, job = await inner(world), await world.job("other")
    first, last = step("first", job), step("last", job, after=("part",))
    return await workflow(world, first, step("part", within, after=("first",), **part), last, name="outer")


async def test_succeeded_steps_of_a_nested_workflow_are_taken_over(world: World):
    flow, worker = await outer(world), await world.worker()
    execution = await begin(world, flow)
    assert await ran(world, worker, {"a": giving(7), "b": failed}) == ["first", "a", "b"]
    assert await state(world, execution) == "failed"

    again = await rerun(world, flow, execution, since="failed")
    assert await ran(world, worker, {"b": failed}) == ["b"]
    third = await rerun(world, flow, again, since="failed")
    assert await ran(world, worker) == ["b", "last"]
    assert (await state(world, third), await steps(world, third)) == (
        "success",
        {"first": "success", "last": "success", "part": "success"},
    )


async def test_a_cancelled_nested_workflow_goes_on(world: World):
    flow, worker = await outer(world), await world.worker()
    execution = await begin(world, flow)
    await run(world, worker)
    await open_all(world)
    await look(world)
    await world.store.promote_due(LONG_AGO, 100, rank)
    (a,) = await worker.claim(1)
    await worker.report(giving(1)(a))
    (b,) = await worker.claim(1)
    await world.store.change(lambda now: workflow_cancel.cancel(execution, "no", world.env.new_id, now, Consequences()))
    for _ in range(3):
        await look(world)
    await worker.report(cancelled(b))
    await look(world)
    assert await state(world, execution) == "cancelled"

    again = await rerun(world, flow, execution, since="failed")
    assert await ran(world, worker) == ["b", "last"]
    assert await state(world, again) == "success"


@pytest.mark.parametrize(
    ("how", "part", "names"),
    [
        ({"since": "part"}, {}, ["a", "b", "last"]),
        ({"since": "first"}, {}, ["first", "a", "b", "last"]),
        ({"since": ""}, {}, ["first", "a", "b", "last"]),
        ({"since": "last"}, {}, ["b", "last"]),
        ({"since": "failed", "latest": True}, {}, ["b", "last"]),
        ({"since": "failed", "params": {"n": 2}}, {}, ["b", "last"]),
        ({"since": "failed", "params": {"n": 2}}, {"params": {"n": "${params.n}"}}, ["a", "b", "last"]),
        ({"since": "failed"}, {"loop": Loop(condition="${true}", until=True)}, ["a", "b", "last"]),
    ],
)
async def test_a_nested_workflow_begins_anew_on_request_or_if_it_changed(world: World, how, part, names):
    flow, worker = await outer(world, **part), await world.worker()
    execution = await begin(world, flow, {"n": 1})
    await ran(world, worker, {"b": failed})
    again = await rerun(world, flow, execution, **{"params": {"n": 1}, **how})
    assert await ran(world, worker) == names
    assert await state(world, again) == "success"


async def test_undone_steps_of_a_nested_workflow_run_again(world: World):
    job = await world.job()
    undone = step("a", job, undo=Call(job=str(job.id), params={}))
    within = await workflow(world, undone, step("b", job, after=("a",)), name="inner")
    flow, worker = await workflow(world, step("part", within), name="outer"), await world.worker()
    execution = await begin(world, flow)
    assert await ran(world, worker, {"b": failed}) == ["a", "b", "a:undo"]
    await rerun(world, flow, execution, since="failed")
    assert await ran(world, worker) == ["a", "b"]


@pytest.mark.parametrize("bad", [1, 3])
async def test_each_workflow_of_a_foreach_goes_on_by_itself(world: World, bad: int):
    within, worker = await inner(world), await world.worker()
    each = step("each", within, foreach=Foreach(items=[1, 2, 3]), params={"n": "${item}"})
    flow = await workflow(world, each, on_error="finish", name="outer", output="${steps.each.result}")
    execution = await begin(world, flow)
    left = [bad]

    def some(slice):
        left[0] -= 1
        return failed(slice) if left[0] >= 0 else giving(5)(slice)

    assert sorted(await ran(world, worker, {"a": giving(7), "b": some})) == ["a", "a", "a", "b", "b", "b"]
    assert await state(world, execution) == "failed"
    left[0] = 1
    again = await rerun(world, flow, execution, since="failed")
    assert await ran(world, worker, {"b": some}) == ["b"] * bad
    assert await state(world, again) == "failed"
    third = await rerun(world, flow, again, since="failed")
    assert await ran(world, worker) == ["b"]
    assert (await state(world, third), await result(world, third)) == ("success", [7, 7, 7])
