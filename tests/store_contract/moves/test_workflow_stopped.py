"""A workflow is stopped while a step is under way: only a step that has finished is a success, and stays one.

Each kind of step meets each `onError`, a sibling that fails, a cancellation, or both; then a rerun takes over what
really succeeded, and nothing else.
"""

from uuid import UUID

import msgspec
import pytest

from horae.model.base.ids import index_of, parcel_of
from horae.model.workflows.decisions.values import Branch
from horae.model.workflows.repeats import Foreach, Loop
from horae.model.workflows.waits import SignalWait
from horae.store.executions.promote import LONG_AGO
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import cancel as workflow_cancel
from tests.store_contract.moves.test_workflow_rerun import giving, rerun
from tests.store_contract.moves.test_workflow_waits import send
from tests.store_contract.moves.test_workflow_waits import signal as go
from tests.store_contract.workflow_world import begin, look, open_all, run, state, step, step_of, steps, workflow
from tests.store_contract.world import World, cancelled, failed, rank

KINDS = ("plain", "until", "while", "foreach", "nested", "signal", "switch")
STOPS = (("fail", "sibling"), ("fail", "cancel"), ("finish", "cancel"), ("ignore", "cancel"), ("finish", "both"))
NOT_YET, THERE = giving(False), giving(True)


async def made(world: World, kind: str, on_error: str):
    """Create a workflow with a step `x` of a kind, a sibling, and a step after `x`."""
    job = await world.job()
    if kind == "plain":
        x = step("x", job)
    elif kind == "until":
        x = step("x", job, loop=Loop(condition="${steps.x.result == true}", until=True))
    elif kind == "while":
        x = step("x", job, loop=Loop(condition="${steps.x.result != true}"))
    elif kind == "foreach":
        x = step("x", job, foreach=Foreach(items=[1, 2, 3], concurrency=2, tolerate=3))
    elif kind == "nested":
        inner = await workflow(world, step("in", job), step("then", job, after=("in",)), name="inner")
        x = step("x", inner)
    elif kind == "signal":
        x = step("x", wait=SignalWait(name="go"))
    else:
        x = step("x", switch=(Branch(then=("next",)),))
    flow = await workflow(world, x, step("bad", job), step("next", job, after=("x",)), on_error=on_error)
    execution = await begin(world, flow)
    await open_all(world)  # nested workflows begin in two steps
    await look(world)
    await world.store.promote_due(LONG_AGO, 100, rank)
    return flow, execution, await world.worker()


async def claim(world: World, worker) -> dict[str, list]:
    """Claim all executions that can run now, item by item; return them by step."""
    held: dict[str, list] = {}
    for slice in await worker.claim(100):
        for item in range(slice.lo, slice.hi):
            one = msgspec.structs.replace(slice, lo=item, hi=item + 1)
            held.setdefault(await step_of(world, one), []).append(one)
    return held


async def happens(world: World, execution: UUID, what: str, worker, bad) -> None:
    if what in ("sibling", "both"):
        await worker.report(failed(bad))
    if what in ("cancel", "both"):
        await world.store.change(
            lambda now: workflow_cancel.cancel(execution, "cancelled", world.env.new_id, now, Consequences())
        )
    await settle(world)


async def settle(world: World) -> None:
    """Stop all executions that are to be stopped, in nested workflows, too."""
    for _ in range(3):
        await look(world)


async def signal(world: World, execution: UUID) -> None:
    """Send the signal for which a step waits."""
    await send(world, execution, go(world, "go"))
    await look(world)


async def check_rerun(world: World, flow, execution: UUID, worker, *, taken: bool) -> None:
    """Check that a rerun from the failed steps takes `x` over, or runs it again."""
    again = await rerun(world, flow, execution, since="failed")
    rows = await world.rows(
        "SELECT state, reason FROM flow_steps WHERE parcel = $1 AND item = $2 AND step = 'x'",
        parcel_of(again),
        index_of(again),
    )
    assert (rows[0][0] == "success" and rows[0][1].startswith("taken over")) == taken
    if rows[0][0] == "waiting":
        await signal(world, again)
    for _ in range(3):
        await run(world, worker, {"x": THERE})
        await look(world)
        await world.store.promote_due(LONG_AGO, 100, rank)
    assert set((await steps(world, again)).values()) == {"success"}
    assert await state(world, again) == "success"


@pytest.mark.parametrize("well", [True, False], ids=["runs end well all the same", "runs are cut short"])
@pytest.mark.parametrize(("on_error", "what"), STOPS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_step_stopped_before_its_end_is_not_a_success(world: World, kind: str, on_error: str, what: str, well):
    flow, execution, worker = await made(world, kind, on_error)
    held = await claim(world, worker)
    (bad,) = held.pop("bad")
    held.pop("next", None)
    await happens(world, execution, what, worker, bad)
    if what == "cancel":
        await worker.report(cancelled(bad))
    for slices in held.values():
        for one in slices:
            await worker.report((NOT_YET if well else cancelled)(one))
    for slice in await worker.holds():  # the steps after the switch
        await worker.report(cancelled(slice))
    await settle(world)
    assert await state(world, execution) in ("failed", "cancelled")
    succeeded = kind == "switch" or (well and kind == "plain")
    assert (await steps(world, execution))["x"] == ("success" if succeeded else "cancelled")
    await check_rerun(world, flow, execution, worker, taken=succeeded)


@pytest.mark.parametrize("kind", KINDS)
async def test_running_steps_finish_unless_they_are_loops_that_would_go_on(world: World, kind: str):
    flow, execution, worker = await made(world, kind, "finish")
    held = await claim(world, worker)
    (bad,) = held.pop("bad")
    await worker.report(failed(bad))
    for slices in held.values():
        for one in slices:
            await worker.report(NOT_YET(one))
    if kind == "signal":
        await signal(world, execution)
    await world.store.promote_due(LONG_AGO, 100, rank)
    more = await run(world, worker)
    assert more == {"foreach": ["x"], "nested": ["then"]}.get(kind, [])
    assert await state(world, execution) == "failed"
    loop = kind in ("until", "while")
    assert (await steps(world, execution))["x"] == ("cancelled" if loop else "success")
    await check_rerun(world, flow, execution, worker, taken=not loop)


@pytest.mark.parametrize("kind", ["until", "while"])
async def test_a_loop_whose_condition_holds_as_the_workflow_stops_is_a_success(world: World, kind: str):
    flow, execution, worker = await made(world, kind, "finish")
    held = await claim(world, worker)
    await worker.report(failed(held["bad"][0]))
    await worker.report(THERE(held["x"][0]))
    assert (await steps(world, execution))["x"] == "success"
    await check_rerun(world, flow, execution, worker, taken=True)


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_is_stopped_where_failures_are_ignored(world: World, kind: str):
    _, execution, worker = await made(world, kind, "ignore")
    if kind == "signal":
        await signal(world, execution)
    for _ in range(3):
        await run(world, worker, {"bad": failed, "x": THERE})
        await world.store.promote_due(LONG_AGO, 100, rank)
    assert await steps(world, execution) == {"bad": "failed", "next": "success", "x": "success"}
    assert await state(world, execution) == "success"
