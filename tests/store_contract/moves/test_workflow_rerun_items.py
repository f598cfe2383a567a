"""A rerun of a foreach takes over the items that succeeded, and runs the others."""

import msgspec
import pytest

from horae.model.admission.limits import KeyLimit
from horae.model.base.duration import DAY
from horae.model.base.ids import index_of, parcel_of
from horae.model.workflows.decisions.values import Call
from horae.model.workflows.repeats import Foreach
from horae.store.executions.promote import LONG_AGO
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows.pause import resume
from tests.store_contract.moves.test_workflow_rerun import rerun
from tests.store_contract.workflow_world import begin, look, params_of, result, run, state, step, steps, workflow
from tests.store_contract.world import World, failed, rank, success


def tens(*bad):
    """Return the outcome of an item: ten times its number, or a failure."""

    async def report(world, worker, one):
        n = (await params_of(world, one))["n"]
        await worker.report(failed(one) if n in bad else success(one, results=[msgspec.json.encode(n * 10)]))
        return n

    return report


async def items(world: World, worker, report) -> list[int]:
    """Run items of a foreach until none is left; return those that ran."""
    ran: list[int] = []
    while True:
        await world.store.promote_due(LONG_AGO, 100, rank)
        await look(world)
        held = await worker.claim(100)
        if not held:
            return sorted(ran)
        singles = [msgspec.structs.replace(s, lo=item, hi=item + 1) for s in held for item in range(s.lo, s.hi)]
        ran += [await report(world, worker, one) for one in singles]


async def fanned(world: World, bad=(2,), params=None, each=None, on_error="finish", **job):
    """Run a workflow with a foreach over 1, 2, 3, 4 of which some fail."""
    made = await world.job(**job)
    asked = {"n": "${item}", "of": "${execution.id}"} if params is None else params
    flow = await workflow(
        world,
        step("each", made, foreach=each or Foreach(items="${params.list}"), params=asked),
        on_error=on_error,
        output="${steps.each.result}",
    )
    execution = await begin(world, flow, {"list": [1, 2, 3, 4]})
    worker = await world.worker()
    assert await items(world, worker, tens(*bad)) == [1, 2, 3, 4]
    assert await state(world, execution) == "failed"
    return flow, execution, worker


async def counted(world: World, execution) -> tuple[int, ...]:
    rows = await world.rows(
        "SELECT total, ok, bad, taken FROM flow_steps WHERE parcel = $1 AND item = $2 AND step = 'each'",
        parcel_of(execution),
        index_of(execution),
    )
    return tuple(rows[0])


async def again(world: World, flow, of, params=None, **how):
    """Submit a rerun with the first params, or with others."""
    given = {"list": [1, 2, 3, 4]} if params is None else params
    return await rerun(world, flow, of, params=given, **{"since": "failed", **how})


@pytest.mark.parametrize("bad", [(1,), (2, 4), (1, 2, 3)])
@pytest.mark.parametrize("limits", [(), (KeyLimit(key="n-${params.n}", concurrency=1),)], ids=["alike", "keyed"])
async def test_only_items_that_failed_run_again_and_results_keep_their_order(world: World, bad, limits):
    tolerant = Foreach(items="${params.list}", concurrency=4)
    flow, execution, worker = await fanned(world, bad, each=tolerant, limits=limits)
    second = await again(world, flow, execution)
    assert await counted(world, second) == (4, 4 - len(bad), 0, 4 - len(bad))
    assert await items(world, worker, tens()) == list(bad)
    assert (await state(world, second), await result(world, second)) == ("success", [10, 20, 30, 40])


async def test_a_rerun_of_a_rerun_takes_over_from_both(world: World):
    flow, execution, worker = await fanned(world, (2, 3))
    second = await again(world, flow, execution)
    assert await items(world, worker, tens(3)) == [2, 3]
    assert await counted(world, second) == (4, 3, 1, 2)
    third = await again(world, flow, second)
    assert await items(world, worker, tens()) == [3]
    assert (await counted(world, third), await result(world, third)) == ((4, 4, 0, 3), [10, 20, 30, 40])


async def test_a_breakpoint_does_not_change_the_items_of_a_rerun(world: World):
    flow, execution, worker = await fanned(world)
    second = await again(world, flow, execution, breakpoints=("each",))
    assert await steps(world, second) == {"each": "held"}
    await world.store.change(lambda now: resume(second, world.env.new_id, now, Consequences()))
    assert await items(world, worker, tens()) == [2]
    assert await result(world, second) == [10, 20, 30, 40]


@pytest.mark.parametrize(
    ("params", "how", "ran"),
    [
        (None, {"since": "each"}, [1, 2, 3, 4]),
        (None, {"since": ""}, [1, 2, 3, 4]),
        ({"list": [1, 2, 3]}, {}, [1, 2, 3]),
        ({"list": [9, 2, 3, 4]}, {}, [2, 3, 4, 9]),
        ({"list": [1, 7, 3, 4]}, {}, [7]),
    ],
)
async def test_only_equal_items_are_taken_over(world: World, params, how, ran):
    flow, execution, worker = await fanned(world, params={"n": "${item}"})
    second = await again(world, flow, execution, params, **how)
    assert await items(world, worker, tens()) == ran
    assert await result(world, second) == [n * 10 for n in (params or {}).get("list", [1, 2, 3, 4])]


async def test_items_that_were_undone_run_again(world: World):
    made, remove = await world.job(), await world.job("remove")
    undo = Call(job=str(remove.id), params={})
    flow = await workflow(world, step("each", made, foreach=Foreach(items=[1, 2]), params={"n": "${item}"}, undo=undo))
    execution, worker = await begin(world, flow), await world.worker()
    for slice in await worker.claim(2):
        for item in range(slice.lo, slice.hi):
            await tens(2)(world, worker, msgspec.structs.replace(slice, lo=item, hi=item + 1))
    await world.store.promote_due(LONG_AGO, 100, rank)
    assert await run(world, worker) == ["each:undo"]
    second = await rerun(world, flow, execution, since="failed")
    assert await items(world, worker, tens()) == [1, 2]
    assert (await state(world, second), await counted(world, second)) == ("success", (2, 2, 0, 0))


async def test_a_rerun_that_fails_undoes_items_that_it_took_over(world: World):
    made, remove = await world.job(), await world.job("remove")
    undo = Call(job=str(remove.id), params={"n": "${item}"})
    each = step("each", made, foreach=Foreach(items=[1, 2]), params={"n": "${item}"})
    execution, worker = await begin(world, await workflow(world, each, name="plain")), await world.worker()
    assert await items(world, worker, tens(2)) == [1, 2]
    steps_now = (msgspec.structs.replace(each, undo=undo), step("last", made, after=("each",), params={"n": 0}))
    undoing = await workflow(world, *steps_now, name="undoing")
    second = await rerun(world, undoing, execution, since="failed", latest=True)
    assert await items(world, worker, tens(0)) == [0, 1, 2, 2], "one item and the last step, then both items undone"
    assert await steps(world, second) == {"each": "success", "each:undo": "success", "last": "failed"}


async def test_items_that_were_taken_over_stay_while_the_rerun_needs_them(world: World):
    flow, execution, worker = await fanned(world)
    second = await again(world, flow, execution)
    world.clock.advance(40 * DAY)
    while await world.driver.expire(world.now() - DAY, 100):
        pass
    assert await world.rows("SELECT count(*) FROM flows WHERE execution = $1", execution) == [(0,)], "and nothing else"
    assert await items(world, worker, tens()) == [2]
    assert await result(world, second) == [10, 20, 30, 40]
