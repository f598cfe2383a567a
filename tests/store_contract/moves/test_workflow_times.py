"""The graph distinguishes waiting for a worker from running, for each step and along the critical path."""

import msgspec
import pytest

from horae.env import SECOND
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.timeouts import Timeouts
from horae.model.workflows.decisions.graph import GraphView, show_graph
from horae.model.workflows.decisions.workflow import StepEnd
from horae.model.workflows.repeats import Foreach, Loop
from horae.model.workflows.waits import SignalWait
from horae.store.executions.leaving import timeouts
from horae.store.executions.promote import LONG_AGO
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import by_hand as workflow_by_hand
from horae.store.workflows import cancel as workflow_cancel
from horae.store.workflows import reads as workflow_reads
from tests.store_contract.workflow_world import begin, look, open_all, step, workflow
from tests.store_contract.world import World, failed, rank, success


async def graph(world: World, execution) -> GraphView:
    found = await world.store.read(lambda: workflow_reads.read_workflow(execution))
    return show_graph(
        found.plan, found.held.workflow, found.steps, found.names, found.held.began_at, None, "running", world.now(),
        found.waits, found.starts,
    )  # fmt: skip


async def times(world: World, execution) -> dict[str, tuple]:
    return {node.step: (node.waited, node.seconds) for node in (await graph(world, execution)).nodes}


async def ran(world: World, worker, seconds: int, outcome=success, **more) -> None:
    """Let a worker claim all executions and end them after a time."""
    (slice,) = await worker.claim(10)
    began = world.now()
    world.clock.advance(seconds * SECOND)
    for item in range(slice.lo, slice.hi):
        one = msgspec.structs.replace(slice, lo=item, hi=item + 1)
        await worker.report(msgspec.structs.replace(outcome(one, **more), started_at=[began], ended_at=[world.now()]))


async def test_a_step_waits_and_then_runs(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job, after=("a",)))
    execution, worker = await begin(world, flow), await world.worker()
    world.clock.advance(12 * SECOND)
    assert await times(world, execution) == {"a": (12, None), "b": (None, None)}
    ready = (await graph(world, execution)).nodes[0]
    assert (ready.started_at, ready.ended_at) == (None, None)
    assert ready.ready_at is not None
    await ran(world, worker, 3)
    world.clock.advance(2 * SECOND)
    held = await worker.claim(1)
    world.clock.advance(4 * SECOND)
    assert await times(world, execution) == {"a": (12, 3), "b": (2, 4)}, "what runs has run for so long"
    await worker.report(success(held[0]))
    whole = await graph(world, execution)
    assert whole.critical_path == ["a", "b"]
    assert whole.critical_seconds.waited == 14
    assert whole.critical_seconds.waited + whole.critical_seconds.ran == 21


async def test_items_of_a_foreach_start_with_the_first(world: World):
    job = await world.job()
    flow = await workflow(world, step("each", job, foreach=Foreach(items=[1, 2, 3])))
    execution, worker = await begin(world, flow), await world.worker()
    world.clock.advance(5 * SECOND)
    assert await times(world, execution) == {"each": (5, None)}
    held = await worker.claim(2)
    world.clock.advance(2 * SECOND)
    assert await times(world, execution) == {"each": (5, 2)}
    assert held


async def test_a_loop_starts_with_its_first_run(world: World):
    job = await world.job()
    flow = await workflow(world, step("poll", job, loop=Loop(condition="${index >= 2}", until=True)))
    execution, worker = await begin(world, flow), await world.worker()
    world.clock.advance(5 * SECOND)
    await ran(world, worker, 1)
    world.clock.advance(2 * SECOND)
    await ran(world, worker, 1)
    assert await times(world, execution) == {"poll": (5, 4)}


async def test_a_retried_step_started_with_its_first_attempt(world: World):
    job = await world.job(retry=RetryPolicy(retries=1, delay=0))
    execution, worker = await begin(world, await workflow(world, step("a", job))), await world.worker()
    world.clock.advance(5 * SECOND)
    await ran(world, worker, 2, failed)
    await world.store.promote_due(LONG_AGO, 100, rank)
    world.clock.advance(SECOND)
    assert (await times(world, execution))["a"][0] == 5


@pytest.mark.parametrize("wait", [True, False])
async def test_steps_without_a_worker_start_at_once(world: World, wait):
    job = await world.job(queue="other")
    inner = await workflow(world, step("in", job), name="inner")
    flow = await workflow(world, step("x", wait=SignalWait(name="go")) if wait else step("x", inner), name="outer")
    execution = await begin(world, flow)
    await open_all(world)
    await look(world)
    world.clock.advance(5 * SECOND)
    assert await times(world, execution) == {"x": (0, 5)}


@pytest.mark.parametrize("kind", ["single", "foreach"])
@pytest.mark.parametrize("end", ["cancelled", "complete", "skip", "deadline"])
async def test_a_step_that_ends_before_its_claim_has_waited_and_not_run(world: World, kind, end):
    job = await world.job(timeouts=Timeouts(queue=10 * SECOND))
    more = {} if kind == "single" else {"foreach": Foreach(items=[1, 2])}
    execution = await begin(world, await workflow(world, step("x", job, **more)))
    world.clock.advance(12 * SECOND)
    if end == "deadline":
        await world.store.change(lambda now: timeouts.end_overdue(100, world.env.new_id, now))
    elif end == "cancelled":
        await world.store.change(
            lambda now: workflow_cancel.cancel(execution, "no", world.env.new_id, now, Consequences())
        )
        await look(world)
    else:
        state = "success" if end == "complete" else "skipped"
        ended = StepEnd(step="x", state=state, forced=True)
        await world.store.change(
            lambda now: workflow_by_hand.decide(execution, ended, "admin", world.env.new_id, now, Consequences())
        )
        await look(world)
    assert await times(world, execution) == {"x": (12, None)}
    whole = await graph(world, execution)
    assert (whole.critical_seconds.waited, whole.critical_seconds.ran) == (12, 0)
