"""Manual changes of workflows under way: stopped executions stop, and held steps do not run."""

from functools import partial

import msgspec
import pytest

from horae.env import SECOND
from horae.model.base.ids import index_of, parcel_of
from horae.model.workflows.decisions.starting import Starter
from horae.model.workflows.decisions.values import Call
from horae.model.workflows.decisions.workflow import StepEnd
from horae.model.workflows.repeats import Foreach, Loop
from horae.model.workflows.waits import EventWait
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import by_hand as workflow_by_hand
from horae.store.workflows import due as workflow_due
from horae.store.workflows.pause import pause, resume
from tests.store_contract.moves.test_workflows import promote
from tests.store_contract.workflow_world import begin, look, run, state, step, steps, workflow
from tests.store_contract.world import World, cancelled, failed, success


async def decide(world: World, execution, ended: StepEnd) -> str:
    move = partial(workflow_by_hand.decide, execution, ended, "operator", world.env.new_id)
    return (await world.store.change(lambda now: move(now, Consequences()))).verdict


async def asked_to_stop(world: World) -> int:
    ((count,),) = await world.rows("SELECT count(*) FROM requests WHERE kind = 'cancel'")
    return int(count)


async def test_the_execution_of_a_step_is_stopped_even_if_its_workflow_ends(world: World):
    job = await world.job()
    execution = await begin(world, await workflow(world, step("a", job)))
    worker = await world.worker()
    (a,) = await worker.claim(1)

    assert await decide(world, execution, StepEnd(step="a", state="skipped", forced=True)) == "done"
    assert await state(world, execution) == "success"
    await look(world)
    assert await asked_to_stop(world) == 1
    assert (await look(world)).count == 0, "it is over"
    await worker.report(success(a))
    assert await steps(world, execution) == {"a": "skipped"}


async def test_items_of_a_skipped_step_are_stopped_even_if_its_workflow_ends(world: World):
    job = await world.job()
    flow = await workflow(world, step("each", job, foreach=Foreach(items=[1, 2, 3])))
    execution = await begin(world, flow)
    await (await world.worker()).claim(1)

    await decide(world, execution, StepEnd(step="each", result=b"[]", forced=True))
    await look(world)
    assert await asked_to_stop(world) == 1
    assert await world.on("queued") == []
    assert (await look(world)).count == 0


async def test_a_loop_of_a_paused_workflow_makes_no_further_run(world: World):
    job = await world.job()
    loop = Loop(condition="${steps.poll.result.done}", until=True, every=10 * SECOND)
    flow = await workflow(world, step("poll", job, loop=loop, params={"last": "${steps.poll.result}"}))
    execution = await begin(world, flow)
    worker = await world.worker()
    (first,) = await worker.claim(1)
    await world.store.change(lambda now: pause(execution, world.env.new_id, now, Consequences()))

    await worker.report(success(first, results=[b'{"done": false}']))
    world.clock.advance(60 * SECOND)
    await promote(world)
    assert await worker.claim(9) == []
    await world.store.change(lambda now: resume(execution, world.env.new_id, now, Consequences()))
    await promote(world)
    (second,) = await worker.claim(9)
    await worker.report(success(second, results=[b'{"done": true}']))
    assert await state(world, execution) == "success"


async def test_an_event_for_a_step_that_has_just_ended_is_deleted(world: World):
    flow = await workflow(world, step("w", wait=EventWait(name="paid")))
    execution = await begin(world, flow)
    await world.store.cancel(parcel_of(execution), index_of(execution), "enough")
    await look(world)
    assert await state(world, execution) == "cancelled"
    # The transaction that stores an event locks no workflow, so the event may reach a step that has ended meanwhile.
    await world.do(
        "INSERT INTO flow_news (parcel, item, step, event, told, at) VALUES ($1, $2, 'w', $3, $4, 0)",
        parcel_of(execution), index_of(execution), world.env.new_id(), msgspec.json.encode({"name": "paid"}),
    )  # fmt: skip

    await look(world)
    assert await world.store.look_up(workflow_due.next_due) is None


async def test_ended_steps_are_recorded_even_if_their_decision_fails(world: World, monkeypatch):
    launch = Starter.launch

    def faulty(self, name, *args):
        return 1 / 0 if name == "b" else launch(self, name, *args)

    monkeypatch.setattr(Starter, "launch", faulty)
    job = await world.job()
    each = step("each", job, foreach=Foreach(items=[1, 2]))
    flow = await workflow(world, each, step("b", job, after=("each",)), last=(step("z", job),))
    execution = await begin(world, flow)

    assert await run(world, await world.worker()) == ["each", "each", "z"]
    assert await steps(world, execution) == {"each": "success", "b": "skipped", "z": "success"}
    assert await state(world, execution) == "failed"


async def test_params_that_became_too_large_fail_their_step(world: World):
    job = await world.job()
    flow = await workflow(
        world, step("each", job, foreach=Foreach(items=list(range(20)))),
        step("b", job, params={"all": "${steps.each.result}"}),
    )  # fmt: skip
    execution = await begin(world, flow)
    large = msgspec.json.encode("x" * 60_000)
    await run(world, await world.worker(), {"each": lambda slice: success(slice, results=[large])})
    assert await steps(world, execution) == {"each": "success", "b": "failed"}
    assert await state(world, execution) == "failed"


@pytest.mark.parametrize("verdict", ["skipped", "success"])
@pytest.mark.parametrize("which", ["b:undo", "a:undo"])
async def test_an_undo_step_can_be_skipped_or_marked_done_like_any_step(world: World, which: str, verdict: str):
    job, remove = await world.job(), Call(job=str((await world.job("remove")).id), params={})
    chain = step("a", job, undo=remove), step("b", job, after=("a",), undo=remove), step("c", job, after=("b",))
    execution = await begin(world, await workflow(world, *chain))
    worker = await world.worker()
    await run(world, worker, {"c": failed}, rounds=3)

    assert await decide(world, execution, StepEnd(step=which, state=verdict, forced=True)) == "done"
    await look(world)
    await worker.report(*map(cancelled, await worker.holds()))
    assert await run(world, worker) == ["a:undo" if which == "b:undo" else "b:undo"]
    assert (await steps(world, execution))[which] == verdict
    assert await state(world, execution) == "failed"
