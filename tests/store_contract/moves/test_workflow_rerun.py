"""Reruns: succeeded steps are taken over with their results, and others run again, by the same definitions."""

from uuid import UUID

import msgspec

from horae.model.admission.limits import Limit
from horae.model.executions.execution import Extra, Rerun
from horae.model.executions.submission import Submission
from horae.model.workflows.repeats import Foreach
from horae.store.admission import coarse
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows.pause import pause, resume
from tests.store_contract.workflow_world import (
    begin,
    look,
    open_all,
    params_of,
    result,
    run,
    state,
    step,
    step_of,
    steps,
    workflow,
)
from tests.store_contract.world import World, failed, success


def giving(value):
    return lambda slice: success(slice, results=[msgspec.json.encode(value)])


async def rerun(world: World, flow, of: UUID, params=None, **how) -> UUID:
    """Submit a rerun, and begin it."""
    (wanted,) = world.wanted(flow)
    wanted = msgspec.structs.replace(wanted, extra=Extra(rerun=Rerun(of=of, **how)))
    if params is not None:
        wanted = msgspec.structs.replace(wanted, item=msgspec.json.encode(params))
    await world.store.submit([Submission(executions=[wanted])])
    (execution,) = await open_all(world)
    return execution


async def chain(world: World):
    """Run a workflow of three steps until the second fails."""
    job = await world.job()
    flow = await workflow(
        world, step("a", job), step("each", job, foreach=Foreach(items="${steps.a.result}"), params={"n": "${item}"}),
        step("b", job, params={"got": "${steps.each.result}"}), step("c", job, after=("b",)),
    )  # fmt: skip
    execution = await begin(world, flow)
    worker = await world.worker()
    said = {"a": giving([1, 2]), "each": giving("x"), "b": failed}
    assert await run(world, worker, said) == ["a", "each", "each", "b"]
    assert await state(world, execution) == "failed"
    return flow, execution, worker


async def test_a_rerun_from_the_failed_step(world: World):
    flow, execution, worker = await chain(world)

    again = await rerun(world, flow, execution, since="failed")
    assert await steps(world, again) == {"a": "success", "each": "success", "b": "running", "c": "pending"}
    (b,) = await worker.claim(1)
    assert await step_of(world, b) == "b"
    assert await params_of(world, b) == {"got": ["x", "x"]}
    await worker.report(giving(7)(b))
    assert await run(world, worker, {"c": giving(8)}) == ["c"]
    assert await result(world, again) == 8
    assert await state(world, execution) == "failed", "the first one stays as it was"


async def test_a_rerun_from_a_step_or_from_the_beginning(world: World):
    flow, execution, worker = await chain(world)

    again = await rerun(world, flow, execution, since="each")
    assert (await steps(world, again))["a"] == "success"
    assert await run(world, worker) == ["each", "each", "b", "c"]
    assert await state(world, again) == "success"
    again = await rerun(world, flow, execution)
    assert await run(world, worker, {"a": giving([])}) == ["a", "b", "c"]
    assert await state(world, again) == "success"


async def test_a_rerun_stops_before_a_breakpoint(world: World):
    flow, execution, worker = await chain(world)
    again = await rerun(world, flow, execution, since="failed", breakpoints=("b",))
    assert await steps(world, again) == {"a": "success", "each": "success", "b": "held", "c": "pending"}
    assert await run(world, worker) == []
    await world.store.change(lambda now: resume(again, world.env.new_id, now, Consequences()))
    assert await run(world, worker) == ["b", "c"]


async def test_one_resume_passes_a_breakpoint_before_the_first_step(world: World):
    flow, execution, _ = await chain(world)
    again = await rerun(world, flow, execution, breakpoints=("a",))
    assert (await steps(world, again))["a"] == "held"
    await world.store.change(lambda now: resume(again, world.env.new_id, now, Consequences()))
    assert (await steps(world, again))["a"] == "running"


async def test_a_rerun_of_a_deleted_workflow_begins_anew(world: World):
    flow, _, worker = await chain(world)
    again = await rerun(world, flow, world.env.new_id(), since="failed")
    assert await run(world, worker, {"a": giving([])}) == ["a", "b", "c"]
    assert await state(world, again) == "success"


async def test_a_rerun_in_a_limited_queue_begins_a_moment_later_as_a_rerun(world: World):
    flow, execution, worker = await chain(world)
    await world.store.write(lambda: coarse.put(Limit(concurrency=5), queue=flow.queue))

    again = await rerun(world, flow, execution, since="failed")
    assert await steps(world, again) == {}
    await world.store.change(lambda now: pause(again, world.env.new_id, now, Consequences()))
    await look(world)
    assert await steps(world, again) == {"a": "success", "each": "success", "b": "held", "c": "pending"}
    await world.store.change(lambda now: resume(again, world.env.new_id, now, Consequences()))
    assert await run(world, worker) == ["b", "c"]
    assert await state(world, again) == "success"
