"""Steps that wait for signals, events, approvals or timeouts; and steps decided manually."""

from functools import partial
from uuid import UUID

import msgspec
import pytest

from horae.env import SECOND
from horae.features.events.store import events
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.signal_waits import Signal
from horae.model.triggers.events.values import NewEvent
from horae.model.workflows.decisions.waits import approval_end
from horae.model.workflows.decisions.workflow import StepEnd
from horae.model.workflows.waits import Approval, EventWait, SignalWait
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import by_hand as workflow_by_hand
from horae.store.workflows import due as workflow_due
from horae.store.workflows import waits as workflow_waits
from tests.store_contract.workflow_world import begin, look, params_of, result, run, state, step, steps, workflow
from tests.store_contract.world import NAMESPACE, World, lead, success


def signal(world: World, name: str, payload: object = None) -> Signal:
    return Signal(id=world.env.new_id(), name=name, payload=msgspec.json.encode(payload))


async def send(world: World, execution: UUID, told: Signal) -> str | None:
    move = partial(workflow_by_hand.send, execution, told, world.env.new_id)
    sent = await world.store.change(lambda now: move(now, Consequences()))
    return None if sent is None else sent.verdict


async def tell(world: World, *given: NewEvent) -> events.IntakeResult:
    return await world.store.change(
        lambda now: events.take(NAMESPACE, given, lead, lambda target, item: None, world.env.new_id, now)
    )


async def answer(world: World, execution: UUID, name: str | None, role: str = "operator", *, agreed: bool = True):
    make = partial(approval_end, agreed=agreed, by="ada", comment="well")
    move = partial(workflow_by_hand.answer, execution, name, role, make, world.env.new_id)
    return await world.store.change(lambda now: move(now, Consequences()))


async def waits(world: World) -> int:
    ((count,),) = await world.rows("SELECT (SELECT count(*) FROM flow_waits) + (SELECT count(*) FROM flow_news)")
    return count


async def test_a_signal_ends_the_wait_for_it_and_is_its_result(world: World):
    job = await world.job()
    flow = await workflow(
        world,
        step("go", wait=SignalWait(name="go-${params.n}")),
        step("b", job, params={"by": "${steps.go.result.by}"}),
    )
    execution = await begin(world, flow, {"n": 1})
    assert await steps(world, execution) == {"go": "waiting", "b": "pending"}
    told = signal(world, "go-1", {"by": "ada"})

    assert await send(world, execution, signal(world, "other")) == "kept"
    assert await send(world, execution, told) == "delivered"
    assert await send(world, execution, told) == "delivered", "the same one, again"
    assert await steps(world, execution) == {"go": "success", "b": "running"}
    (b,) = await (await world.worker()).claim(1)
    assert await params_of(world, b) == {"by": "ada"}
    assert await waits(world) == 0


async def test_an_earlier_signal_is_taken_at_once(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("go", wait=SignalWait(name="go"), after=("a",)))
    execution = await begin(world, flow)
    assert await send(world, execution, signal(world, "go", 5)) == "kept"

    assert await run(world, await world.worker()) == ["a"]
    assert await state(world, execution) == "success"
    assert await result(world, execution) == 5
    assert await send(world, execution, signal(world, "go")) == "final"


async def test_other_executions_take_no_workflow_signals(world: World):
    assert await send(world, world.env.new_id(), signal(world, "go")) is None


async def test_an_event_that_passes_the_filter_ends_the_wait(world: World):
    filter = "${event.payload.order == params.order}"
    flow = await workflow(world, step("paid", wait=EventWait(name="payment", filter=filter)))
    execution = await begin(world, flow, {"order": 7})
    name = "payment"

    taken = await tell(world, NewEvent(name="other", payload=b'{"order":7}'), NewEvent(name=name, payload=b"[]"))
    assert taken.wake_at is not None
    await look(world)
    assert await steps(world, execution) == {"paid": "waiting"}
    taken = await tell(
        world, NewEvent(name=name, payload=b'{"order":8}'), NewEvent(name=name, payload=b'{"order":7,"by":"card"}')
    )
    assert taken.wake_at == world.now()
    await look(world)

    assert await state(world, execution) == "success"
    assert (await result(world, execution))["payload"] == {"order": 7, "by": "card"}
    assert await waits(world) == 0


async def test_an_event_reaches_only_steps_that_wait_at_its_arrival(world: World):
    await tell(world, NewEvent(name="early", payload=b"1"))
    execution = await begin(world, await workflow(world, step("e", wait=EventWait(name="early"))))
    await look(world)
    assert await steps(world, execution) == {"e": "waiting"}


async def test_an_approval_is_given_or_refused(world: World):
    job = await world.job()
    flow = await workflow(
        world, step("ok", wait=Approval(roles=("operator",))), step("other", wait=Approval()),
        step("b", job, after=("ok",)),
    )  # fmt: skip
    execution = await begin(world, flow)

    assert (await answer(world, execution, None)).verdict == "several"
    assert (await answer(world, execution, "b")).verdict == "idle"
    assert (await answer(world, execution, "z")).verdict == "nothing"
    assert (await answer(world, execution, "ok", "viewer")).verdict == "forbidden"
    assert (await answer(world, execution, "ok")).verdict == "done"
    assert (await answer(world, execution, "ok")).verdict == "final"
    assert await steps(world, execution) == {"ok": "success", "other": "waiting", "b": "running"}
    assert (await answer(world, execution, None, agreed=False)).steps == ["other"]
    await look(world)
    assert (await steps(world, execution))["other"] == "failed"
    assert (await answer(world, world.env.new_id(), None)).verdict == "unknown"


@pytest.mark.parametrize(
    ("wait", "ends"),
    [
        (EventWait(name="e", timeout=5 * SECOND), "failed"),
        (SignalWait(name="s", timeout=5 * SECOND, on_timeout="skip"), "skipped"),
        (Approval(timeout=5 * SECOND), "failed"),
        (Approval(timeout=5 * SECOND, on_timeout="approve"), "success"),
    ],
)
async def test_a_wait_past_its_timeout_ends_as_defined(world: World, wait, ends: str):
    execution = await begin(world, await workflow(world, step("w", wait=wait)))
    world.clock.advance(4 * SECOND)
    await look(world)
    assert await steps(world, execution) == {"w": "waiting"}
    world.clock.advance(SECOND)
    await look(world)
    assert await steps(world, execution) == {"w": ends}
    assert await waits(world) == 0


async def test_a_cancelled_workflow_waits_for_nothing(world: World):
    execution = await begin(world, await workflow(world, step("w", wait=SignalWait(name="s"))))
    await world.store.cancel(parcel_of(execution), index_of(execution), "enough")
    await look(world)
    assert await state(world, execution) == "cancelled"
    assert await waits(world) == 0


async def test_a_step_can_be_marked_done_or_skipped(world: World):
    job = await world.job()
    flow = await workflow(
        world, step("a", job), step("b", job, after=("a",)), step("c", job, after=("b",), join="noneFailed"),
        step("w", wait=SignalWait(name="s")),
    )  # fmt: skip
    execution = await begin(world, flow)
    worker = await world.worker()
    (a,) = await worker.claim(1)

    async def decide(ended: StepEnd) -> str:
        move = partial(workflow_by_hand.decide, execution, ended, "operator", world.env.new_id)
        return (await world.store.change(lambda now: move(now, Consequences()))).verdict

    assert await decide(StepEnd(step="x", forced=True)) == "nothing"
    assert await decide(StepEnd(step="a", result=b"1", forced=True)) == "done"
    assert await decide(StepEnd(step="b", state="skipped", forced=True)) == "done"
    assert await decide(StepEnd(step="b", state="skipped", forced=True)) == "final"
    assert await decide(StepEnd(step="w", forced=True)) == "done"
    await look(world)
    assert await steps(world, execution) == {"a": "success", "b": "skipped", "c": "running", "w": "success"}
    assert await waits(world) == 0
    await worker.report(success(a))
    assert await run(world, worker) == ["c"]
    assert await state(world, execution) == "success"


async def test_open_approvals_are_reminded_repeatedly(world: World):
    execution = await begin(world, await workflow(world, step("ok", wait=Approval(remind=60 * SECOND))))

    async def reminded() -> list[str]:
        done = Consequences()
        await world.store.change(lambda now: workflow_waits.remind(10, now, done))
        return [f"{one.step} {one.state}" for one in done.stepped if one.execution == execution]

    assert await reminded() == []
    assert await world.store.read(workflow_due.next_due) == world.now() + 60 * SECOND
    for _ in range(2):
        world.clock.advance(60 * SECOND)
        assert await reminded() == ["ok waiting"]
        assert await reminded() == []


async def test_approvals_of_all_workflows_are_listed_oldest_first(world: World):
    asks = await workflow(world, step("ok", wait=Approval(roles=("operator",))), step("sure", wait=Approval()))
    first = await begin(world, asks)
    world.clock.advance(SECOND)
    second = await begin(world, asks)

    async def asked(after: workflow_by_hand.Place, limit: int) -> list[workflow_by_hand.PendingApproval]:
        return await world.store.read(lambda: workflow_by_hand.pending_approvals(NAMESPACE, after, limit))

    some = await asked((-1, UUID(int=0), 0, ""), 3)
    rest = await asked(some[-1].place, 3)
    told = [(one.execution, one.step, one.approval.roles) for one in [*some, *rest]]
    assert told == [(id, *what) for id in (first, second) for what in (("ok", ("operator",)), ("sure", ()))]
