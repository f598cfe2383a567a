"""Workflows: a step follows its predecessors in the transaction that ends the last one, and the parent its steps."""

from tests.store_contract.flow_world import begin, run, state, step, steps, workflow
from tests.store_contract.world import World


async def test_the_steps_of_a_chain_follow_one_another_and_the_workflow_ends_with_the_last(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job, after=("a",)), step("c", job, after=("b",)))
    execution = await begin(world, flow)
    assert await steps(world, execution) == {"a": "running", "b": "pending", "c": "pending"}
    assert await state(world, execution) == "running"

    assert await run(world, await world.worker()) == ["a", "b", "c"]
    assert await steps(world, execution) == {"a": "success", "b": "success", "c": "success"}
    assert await state(world, execution) == "success"
    await world.check()
