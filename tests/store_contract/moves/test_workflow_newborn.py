"""New steps: the exchange that reported their predecessor gets them at once, if a claim would grant them, too."""

from typing import Any

from msgspec import structs

from horae.env import SECOND
from horae.model.admission.claim_plan import LaneState, QueuePreferences
from horae.model.admission.hold import Hold
from horae.model.admission.limits import Limit
from horae.store.admission import coarse, holds
from tests.store_contract.workflow_world import begin, run, state, step, step_of, steps, workflow
from tests.store_contract.world import NAMESPACE, TestJob, Worker, World, success


def arising(lanes: Any) -> list[LaneState]:
    """Return the states of lanes without limits, as a server makes them."""
    return [LaneState(lane=lane, low=low) for lane, low in lanes.items()]


async def chain(world: World, *names: str, **spec: Any) -> tuple[TestJob, Any, Worker, Any]:
    """Begin a workflow of consecutive steps, and let a worker claim the first."""
    job = await world.job(**spec)
    made = [step(name, job, after=(names[i - 1],) if i else ()) for i, name in enumerate(names)]
    execution = await begin(world, await workflow(world, *made))
    worker = await world.worker()
    (first,) = await worker.claim(1)
    return job, execution, worker, first


async def asked(worker: Worker, slice: Any, job: TestJob, **more: Any) -> list[Any]:
    """Report a step to a server that expects empty queues, and ask for another; return the grants."""
    fields = {"views": [], "lanes": frozenset({job.lane}), "arising": arising, "free": 1, **more}
    return (await worker.report(success(slice), **fields)).granted


async def test_a_following_step_is_granted_without_being_queued(world: World):
    job, execution, worker, a = await chain(world, "a", "b", "c")
    before = world.driver.statements.copy()

    (b,) = await asked(worker, a, job)

    assert await step_of(world, b) == "b"
    assert await world.on("queued") == []
    assert not any(world.driver.statements[name] - before[name] for name in ("insert queued", "pick_queued"))
    before = world.driver.statements.copy()
    (c,) = await asked(worker, b, job)
    looked_up = ("lock_workflow_of_child", "workflows_of_children", "targets_of_pins", "queue_policies")
    assert not any(world.driver.statements[name] - before[name] for name in looked_up), "whose step it is was known"
    await asked(worker, c, job)
    assert await steps(world, execution) == {"a": "success", "b": "success", "c": "success"}
    assert await state(world, execution) == "success"


async def test_steps_beyond_the_free_slots_are_queued(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), *(step(name, job, after=("a",)) for name in ("b", "c", "d")))
    await begin(world, flow)
    worker = await world.worker()
    (a,) = await worker.claim(1)

    granted = await asked(worker, a, job, free=2)

    assert sum(s.hi - s.lo for s in granted) == 2
    assert sum(s.hi - s.lo for s in await world.on("queued")) == 1
    assert worker.effects.requeued.keys() == {job.lane}, "nobody is told of what is left"
    await worker.report(*map(success, granted))
    assert len(await run(world, worker)) == 1


async def test_executions_queued_earlier_come_first(world: World):
    job, _, worker, a = await chain(world, "a", "b")
    (other,) = await world.submit(job)
    world.clock.advance(SECOND)

    (first,) = await asked(worker, a, job, views=await world.views())

    assert first.parcel == other.execution_id
    assert sum(s.hi - s.lo for s in await world.on("queued")) == 1


async def test_a_step_of_a_queue_that_is_held_stays_in_it(world: World):
    job, _, worker, a = await chain(world, "a", "b")
    now = world.now()
    hold = Hold(id=world.env.new_id(), namespace=NAMESPACE, queue=job.queue, until_at=now + SECOND, created_at=now)
    await world.store.write(lambda: holds.open_hold(hold))

    assert await asked(worker, a, job) == []
    assert [s.lane for s in await world.on("queued")] == [job.lane]


async def test_a_limit_that_the_server_does_not_know_is_respected(world: World):
    job, _, worker, a = await chain(world, "a", "b")
    await world.store.write(lambda: coarse.put(Limit(concurrency=1), queue=job.queue))

    assert await asked(worker, a, job) == []
    assert [s.lane for s in await world.on("queued")] == [job.lane]
    assert await run(world, worker) == ["b"]


async def test_a_known_limit_is_checked_under_its_lock(world: World):
    job, _, worker, a = await chain(world, "a", "b")
    await world.store.write(lambda: coarse.put(Limit(concurrency=1), queue=job.queue))
    (view,) = [view for view in await world.views() if view.lane == job.lane]
    await world.submit(job)
    other = await world.worker("other")
    assert len(await other.claim(1)) == 0, "the first step runs, and the limit is one"

    (first,) = await asked(worker, a, job, arising=lambda lanes: [view])

    assert first.flags & 2, "what runs under a limit is not marked"


async def test_a_step_of_a_paused_job_does_not_start(world: World):
    job, _, worker, a = await chain(world, "a", "b")

    assert await asked(worker, a, job, paused=frozenset({job.id})) == []
    assert [s.lane for s in await world.on("queued")] == [job.lane]


async def test_a_worker_with_queue_weights_gets_steps_by_its_weights(world: World):
    job, _, worker, a = await chain(world, "a", "b")
    head = worker.head

    def weighing(*about: Any, **more: Any) -> Any:
        return structs.replace(head(*about, **more), preferences=QueuePreferences({job.queue: 1}))

    worker.head = weighing  # type: ignore[method-assign]
    before = world.driver.statements["insert queued"]
    await asked(worker, a, job)
    assert world.driver.statements["insert queued"] == before + 1
