"""The daily statements of workflows."""

from typing import Any

import msgspec

from horae.env import SECOND
from horae.model.workflows.repeats import Foreach
from horae.model.workflows.waits import Approval, EventWait, Sleep
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import due as workflow_due
from horae.store.workflows import waits as workflow_waits
from tests.store_contract.workflow_world import begin, look, open_all, run, step, workflow
from tests.store_contract.world import NAMESPACE, TestJob, World, failed, success

# Statements of users' requests: reading, pausing, resuming, rerunning and cancelling workflows.
RARE_WORKFLOWS = {
    *("workflow_steps_all", "names_of_jobs", "workflow_steps_failed", "reopen_letters", "items_to_take_over"),
    *("starts_of_fans", "starts_of_children", "first_children", "params_of_children", "extras_of_retries"),
    *("workflows_of_tree", "queued_steps", "waiting_steps", "paused_steps", "workflow_steps_held"),
    *("workflow_steps_open", "fanned_out_to", "children_waiting", "children_queued", "children_left"),
    *("children_with_children", "sessions_of_parcels", "children_running", "end_other_steps"),
    *("blobs_of", "first_starts", "item_with_children", "flags_of_item", "no_copy", "items_that_succeeded"),
    *("waits_of_workflow", "callback_secret"),
    # Statements of edits, deletions and restorations of workflows with jobs of their own
    *("change_owned_jobs", "delete_all_owned_jobs", "delete_owned_jobs", "forget_uses", "jobs_made_from", "owned_jobs"),
    *("owners_of_jobs", "restore_owned_jobs", "used_below", "versions_and_states", "workflows_that_run"),
}


async def flow(world: World) -> None:
    """Run chains, foreach steps, sleeps and nested workflows that succeed and fail."""
    job = await world.job("step", queue="steps")
    below = await workflow(world, step("x", job), name="below", queue="steps")
    above = await workflow(
        world,
        step("a", job),
        step("b", job, foreach=Foreach(items="${steps.a.result}"), params={"n": "${item}"}),
        step("c", job, params={"all": "${steps.b.result}"}),
        step("d", below, after=("c",)),
        step("nap", wait=Sleep(span=SECOND), after=("d",)),
        name="above",
        queue="steps",
    )
    lanes = frozenset({job.lane})
    worker = await world.worker("flows")
    execution = await begin(world, above)
    listed = {"a": lambda slice: success(slice, results=[msgspec.json.encode([1, 2])])}
    await run(world, worker, listed, lanes=lanes)
    await open_all(world)
    await look(world)
    await run(world, worker, lanes=lanes)
    world.clock.advance(SECOND)
    await look(world)
    assert (await world.rows("SELECT state FROM flows WHERE execution = $1", execution))[0][0] == "ended"
    await begin(world, above)
    await run(world, worker, {"a": failed}, lanes=lanes)
    await look(world)
    await world.store.read(workflow_due.next_due)
    await world.store.read(workflow_due.is_any_under_way)
    await two_at_once(world, worker, job, lanes)
    await wait_for_others(world)


async def two_at_once(world: World, worker: Any, job: TestJob, lanes: frozenset[int]) -> None:
    """Report steps of two workflows together, and advance both together."""
    nap = step("nap", wait=Sleep(span=SECOND), after=("a",))
    flow = await workflow(world, step("a", job), nap, name="two", queue="steps")
    for _ in range(2):
        await begin(world, flow)
    await worker.report(*map(success, await worker.claim(2, lanes=lanes)))
    world.clock.advance(SECOND)
    await look(world)


async def wait_for_others(world: World) -> None:
    """Wait for an event, and for an approval with a reminder."""
    waits = (step("paid", wait=EventWait(name="payment")), step("ok", wait=Approval(remind=SECOND, timeout=2 * SECOND)))
    await begin(world, await workflow(world, *waits, name="waits-for-others", queue="steps"))
    paid = [(world.env.new_id(), "payment", {"payload": 1})]
    await world.store.change(lambda now: workflow_waits.record_events(NAMESPACE, paid, now))
    await look(world)
    for _ in range(2):
        world.clock.advance(SECOND)
        await world.store.change(lambda now: workflow_waits.remind(10, now, Consequences()))
    await look(world)
