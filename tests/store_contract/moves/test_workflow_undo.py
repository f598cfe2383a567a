"""Compensation of a foreach: the items that succeeded, from the last to the first, one after another."""

import msgspec

from horae.model.base.ids import index_of, parcel_of
from horae.model.definitions.retry import RetryPolicy
from horae.model.workflows.decisions.values import Call
from horae.model.workflows.repeats import Foreach
from horae.store.executions.promote import LONG_AGO
from tests.store_contract.workflow_world import begin, look, open_all, params_of, state, step, step_of, steps, workflow
from tests.store_contract.world import World, failed, rank, success


async def promote(world: World) -> None:
    await world.store.promote_due(LONG_AGO, 100, rank)


async def fanned(world: World, most: int = 3, **undo):
    """Run a workflow with a foreach whose items succeed except item 1, and a step after it that fails."""
    job = await world.job()
    remove = await world.job("remove", queue="undo", **undo)
    taking = {"it": "${item}", "made": "${steps.each.result[index]}"}
    each = Foreach(items="${params.list}", tolerate=1)
    flow = await workflow(
        world,
        step("each", job, foreach=each, params={"n": "${item}"}, undo=Call(job=str(remove.id), params=taking)),
        step("b", job, after=("each",)),
    )
    execution = await begin(world, flow, {"list": list(range(most))})
    worker = await world.worker()
    for slice in await worker.claim(most):
        for item in range(slice.lo, slice.hi):
            one = msgspec.structs.replace(slice, lo=item, hi=item + 1)
            n = (await params_of(world, one))["n"]
            await worker.report(failed(one) if n == 1 else success(one, results=[msgspec.json.encode(n * 10)]))
    (b,) = await worker.claim(1)
    await worker.report(failed(b))
    await promote(world)
    return execution, worker


async def test_items_are_undone_one_at_a_time_last_first(world: World):
    execution, worker = await fanned(world, retry=RetryPolicy(retries=1, delay=0))
    undone = []
    for fails in (True, False, False):
        await open_all(world)
        (one,) = await worker.claim(10)
        assert await step_of(world, one) == "each:undo"
        undone.append(await params_of(world, one))
        await worker.report(failed(one) if fails else success(one))
        assert await worker.claim(10) == [] if fails else True  # a retried item keeps its turn
        await promote(world)
    assert undone == [{"it": 2, "made": 20}, {"it": 2, "made": 20}, {"it": 0, "made": 0}]
    assert await steps(world, execution) == {"each": "success", "b": "failed", "each:undo": "success"}
    assert await state(world, execution) == "failed"


async def test_items_of_a_job_with_its_own_sequence_are_undone_one_at_a_time_too(world: World):
    execution, worker = await fanned(world, sequence="all")
    for _ in range(2):
        (one,) = await worker.claim(10)
        await worker.report(failed(one))
        await promote(world)
    assert (await steps(world, execution))["each:undo"] == "failed"
    assert await state(world, execution) == "failed"


async def test_cancelling_undoes_the_items_that_were_finished(world: World):
    job = await world.job()
    flow = await workflow(
        world,
        step("each", job, foreach=Foreach(items="${[1, 2]}", concurrency=1), undo=Call(job=str(job.id))),
    )
    execution = await begin(world, flow)
    await promote(world)
    worker = await world.worker()
    (one,) = await worker.claim(1)
    await worker.report(success(one))
    await cancel(world, execution)
    await promote(world)
    (undoing,) = await worker.claim(10)
    assert await step_of(world, undoing) == "each:undo"
    assert await params_of(world, undoing) == {"item": 1, "index": 0}
    await worker.report(success(undoing))
    assert await state(world, execution) == "cancelled"


async def cancel(world: World, execution) -> None:
    await world.store.cancel(parcel_of(execution), index_of(execution), "enough")
    await look(world)
