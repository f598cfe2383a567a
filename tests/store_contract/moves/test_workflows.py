"""Workflows: a step starts in the transaction that ends its last predecessor, and the workflow ends with its steps."""

from collections import Counter

import msgspec

from horae.env import SECOND
from horae.model.admission.execution_keys import envelope_keys
from horae.model.admission.keys import keys_of
from horae.model.admission.limits import Limit
from horae.model.base.duration import DAY
from horae.model.base.ids import index_of, parcel_of
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions.deduplication import Batch
from horae.model.workflows.decisions.graph import show_graph
from horae.model.workflows.repeats import Foreach, Loop
from horae.model.workflows.waits import Sleep
from horae.store.admission import coarse
from horae.store.executions.promote import LONG_AGO
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows.pause import pause, resume
from horae.store.workflows.reads import read_workflow
from tests.store_contract.workflow_world import (
    begin,
    child,
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
from tests.store_contract.world import World, failed, rank, success


def giving(value):
    """Return a report of success with a result."""
    return lambda slice: success(slice, results=[msgspec.json.encode(value)])


async def test_the_steps_of_a_chain_follow_one_another_and_the_workflow_ends_with_the_last(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job, after=("a",)), step("c", job, after=("b",)))
    execution = await begin(world, flow)
    assert await steps(world, execution) == {"a": "running", "b": "pending", "c": "pending"}
    assert await state(world, execution) == "running"

    assert await run(world, await world.worker(), {"c": giving(7)}) == ["a", "b", "c"]
    assert await steps(world, execution) == {"a": "success", "b": "success", "c": "success"}
    assert await state(world, execution) == "success"
    assert await result(world, execution) == 7


async def test_a_join_waits_for_all_its_upstreams(world: World):
    job = await world.job()
    flow = await workflow(
        world, step("a", job), step("b", job, after=("a",)), step("c", job, after=("a",)),
        step("d", job, after=("b", "c")),
    )  # fmt: skip
    execution = await begin(world, flow)
    worker = await world.worker()
    (a,) = await worker.claim(9)
    await worker.report(success(a))
    middle = await worker.claim(9)
    assert sum(slice.hi - slice.lo for slice in middle) == 2

    await worker.report(success(middle[0], hi=middle[0].lo + 1))
    assert (await steps(world, execution))["d"] == "pending"
    assert await run(world, worker) == []
    (left,) = await worker.holds()
    await worker.report(success(left))
    assert await run(world, worker) == ["d"]
    assert await state(world, execution) == "success"


async def test_a_step_may_be_granted_by_the_exchange_that_reports_its_predecessor(world: World):
    job = await world.job()
    await begin(world, await workflow(world, step("a", job), step("b", job, after=("a",))))
    worker = await world.worker()
    (a,) = await worker.claim(1)

    reply = await worker.report(success(a), free=1)

    assert [await step_of(world, slice) for slice in reply.granted] == ["b"]


async def test_params_take_results_of_earlier_steps(world: World):
    job = await world.job()
    flow = await workflow(
        world, step("a", job), step("b", job, params={"rows": "${steps.a.result.rows}", "day": "${params.day}"}),
        output="${steps.b.result + 1}",
    )  # fmt: skip
    execution = await begin(world, flow, {"day": "monday"})
    worker = await world.worker()
    (a,) = await worker.claim(1)
    await worker.report(giving({"rows": 3})(a))
    (b,) = await worker.claim(1)

    assert await params_of(world, b) == {"rows": 3, "day": "monday"}
    await worker.report(giving(41)(b))
    assert await result(world, execution) == 42


async def test_an_expression_error_fails_its_step_and_not_the_report(world: World):
    job = await world.job()
    execution = await begin(
        world, await workflow(world, step("a", job), step("b", job, when="${steps.a.result.x > 1}"))
    )
    worker = await world.worker()

    assert await run(world, worker, {"a": giving({"y": 1})}) == ["a"]
    assert await steps(world, execution) == {"a": "success", "b": "failed"}
    assert await state(world, execution) == "failed"


async def test_a_deleted_job_and_params_that_do_not_fit_fail_their_step(world: World):
    job, gone = await world.job(), await world.job("gone")
    strict = await world.job("strict", schema={"type": "object", "required": ["n"]})
    flow = await workflow(
        world, step("a", job), step("b", gone, after=("a",)), step("c", strict, after=("a",)), on_error="ignore"
    )
    execution = await begin(world, flow)
    await world.do("UPDATE jobs SET state = 'deleted' WHERE id = $1", gone.id)

    assert await run(world, await world.worker()) == ["a"]
    assert await steps(world, execution) == {"a": "success", "b": "failed", "c": "failed"}


async def test_a_failed_step_is_retried_before_it_fails_its_workflow(world: World):
    job = await world.job(retry=RetryPolicy(retries=1))
    execution = await begin(world, await workflow(world, step("a", job), step("b", job, after=("a",))))
    worker = await world.worker()
    (a,) = await worker.claim(1)
    await worker.report(failed(a))
    assert await steps(world, execution) == {"a": "running", "b": "pending"}

    world.clock.advance(3600 * SECOND)
    await promote(world)
    await worker.report(*map(failed, await worker.claim(1)))
    assert await steps(world, execution) == {"a": "failed", "b": "skipped"}
    assert await state(world, execution) == "failed"


async def test_a_failure_stops_running_steps_and_ends_those_that_have_not_begun(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job), step("c", job, after=("a", "b")))
    execution = await begin(world, flow)
    worker = await world.worker()
    held = {await step_of(world, one): one for one in _each(await worker.claim(2))}

    await worker.report(failed(held["a"]))
    assert await steps(world, execution) == {"a": "failed", "b": "running", "c": "skipped"}
    assert await state(world, execution) == "running"
    await look(world)
    asked = (await world.store.requests_of([worker.session]))[worker.session]
    assert [(parcel, item, kind) for parcel, item, _, kind in asked] == [(held["b"].parcel, held["b"].lo, "cancel")]
    await worker.report(failed(held["b"]))
    assert (await steps(world, execution))["b"] == "cancelled"
    assert await state(world, execution) == "failed"


async def test_running_steps_may_finish_after_a_failure(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job), step("c", job, after=("b",)), on_error="finish")
    execution = await begin(world, flow)
    worker = await world.worker()

    assert sorted(await run(world, worker, {"a": failed})) == ["a", "b"]
    assert await steps(world, execution) == {"a": "failed", "b": "success", "c": "skipped"}
    assert await state(world, execution) == "failed"


async def test_steps_after_skipped_ones_are_skipped_unless_their_join_allows_it(world: World):
    job = await world.job()
    flow = await workflow(
        world, step("a", job, when="${false}"), step("b", job, after=("a",)),
        step("c", job, after=("a", "b"), join="always"),
    )  # fmt: skip
    execution = await begin(world, flow)

    assert await run(world, await world.worker()) == ["c"]
    assert await steps(world, execution) == {"a": "skipped", "b": "skipped", "c": "success"}


async def test_a_foreach_runs_one_execution_for_each_item_and_collects_their_results(world: World):
    job = await world.job()
    flow = await workflow(
        world, step("a", job), step("b", job, foreach=Foreach(items="${steps.a.result}"), params={"n": "${item}"}),
        step("c", job, params={"all": "${steps.b.result}"}),
    )  # fmt: skip
    execution = await begin(world, flow)
    worker = await world.worker()
    (a,) = await worker.claim(1)
    await worker.report(giving([4, 5, 6])(a))

    (each,) = await worker.claim(9)
    assert each.hi - each.lo == 3
    await worker.report(success(each, 1, 3, results=[b"50", b"60"]))
    assert (await steps(world, execution))["b"] == "running"
    await worker.report(success(each, 0, 1, results=[b"40"]))
    (c,) = await worker.claim(1)
    assert await params_of(world, c) == {"all": [40, 50, 60]}
    await worker.report(success(c))
    assert await state(world, execution) == "success"


async def test_a_foreach_starts_a_batch_of_one_for_each_item(world: World):
    job = await world.job(batch=Batch(size=10, wait=SECOND))
    await begin(world, await workflow(world, step("a", job, foreach=Foreach(items=[1, 2]), params={"n": "${item}"})))

    (each,) = await (await world.worker()).claim(9)
    (parcel,) = await world.store.parcels([each.parcel])
    assert [bytes(parcel.items.one(i)) for i in range(2)] == [b'{"items":[{"n":1}]}', b'{"items":[{"n":2}]}']


async def test_an_empty_foreach_is_a_success(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job, foreach=Foreach(items=[])), step("b", job, after=("a",)))
    execution = await begin(world, flow)

    assert await run(world, await world.worker()) == ["b"]
    assert await state(world, execution) == "success"


async def test_a_foreach_respects_its_concurrency(world: World):
    job = await world.job()
    items = list(range(5))
    execution = await begin(world, await workflow(world, step("a", job, foreach=Foreach(items=items, concurrency=2))))
    worker = await world.worker()
    assert await worker.claim(9) == []
    await promote(world)

    for left in (5, 4, 3, 2, 1):
        await worker.claim(9)
        held = _each(await worker.holds())
        assert len(held) == min(2, left)
        await worker.report(success(held[0]))
    assert await state(world, execution) == "success"


async def test_a_foreach_tolerates_its_number_of_failures(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job, foreach=Foreach(items=[1, 2, 3], tolerate=1)))
    execution = await begin(world, flow)
    worker = await world.worker()
    (each,) = await worker.claim(9)

    await worker.report(failed(each, 0, 1), success(each, 1, 3))
    assert await state(world, execution) == "success"


async def test_a_foreach_that_fails_stops_the_rest_of_its_items(world: World):
    job = await world.job()
    execution = await begin(world, await workflow(world, step("a", job, foreach=Foreach(items=list(range(6))))))
    worker = await world.worker()
    (two,) = await worker.claim(2)

    await worker.report(failed(two, 0, 1))
    assert await steps(world, execution) == {"a": "running"}
    await look(world)
    assert [(lo, hi, state) for lo, hi, state, _ in await world.history(two.parcel)] == [
        (0, 1, "failed"), (2, 6, "cancelled"),
    ]  # fmt: skip
    await worker.report(failed(two, 1, 2))
    assert await state(world, execution) == "failed"


async def test_a_workflow_may_be_a_step_and_its_end_goes_on_in_the_same_transaction(world: World):
    job = await world.job()
    inner = await workflow(world, step("x", job), name="inner")
    outer = await workflow(world, step("a", inner), step("b", job, params={"got": "${steps.a.result}"}), name="outer")
    execution = await begin(world, outer)
    (below,) = await open_all(world)
    assert await state(world, below) == "running"
    await look(world)
    worker = await world.worker()
    (x,) = await worker.claim(1)

    await worker.report(giving(5)(x))
    assert await state(world, below) == "success"
    (b,) = await worker.claim(1)
    assert await params_of(world, b) == {"got": 5}
    await worker.report(success(b))
    assert await state(world, execution) == "success"


async def test_a_loop_runs_until_its_condition_holds(world: World):
    job = await world.job()
    loop = Loop(condition="${steps.a.result.done}", until=True, every=10 * SECOND)
    execution = await begin(world, await workflow(world, step("a", job, loop=loop)))
    worker = await world.worker()

    (first,) = await worker.claim(1)
    await worker.report(giving({"done": False})(first))
    assert await worker.claim(1) == []
    world.clock.advance(10 * SECOND)
    await promote(world)
    (second,) = await worker.claim(1)
    assert child(second) != child(first)
    await worker.report(giving({"done": True})(second))
    assert await state(world, execution) == "success"


async def test_a_sleep_ends_when_its_time_has_come(world: World):
    job = await world.job()
    flow = await workflow(world, step("nap", wait=Sleep(span=60 * SECOND)), step("b", job, after=("nap",)))
    execution = await begin(world, flow)
    assert await steps(world, execution) == {"nap": "waiting", "b": "pending"}
    assert (await look(world)).count == 0

    world.clock.advance(60 * SECOND)
    await look(world)
    assert await run(world, await world.worker()) == ["b"]
    assert await state(world, execution) == "success"


async def test_a_workflow_that_is_over_its_time_fails(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job, after=("a",)), timeout=60 * SECOND)
    execution = await begin(world, flow)

    world.clock.advance(60 * SECOND)
    await look(world)
    assert await steps(world, execution) == {"a": "cancelled", "b": "skipped"}
    assert await state(world, execution) == "failed"
    (row,) = await world.rows("SELECT reason FROM history WHERE parcel = $1", parcel_of(execution))
    assert row[0] == "timeout"


async def test_cancelling_a_workflow_cancels_its_steps_below_too(world: World):
    job = await world.job()
    inner = await workflow(world, step("x", job), step("y", job, after=("x",)), name="inner")
    outer = await workflow(
        world, step("a", inner), step("nap", wait=Sleep(span=SECOND)), step("b", job, after=("a",)), name="outer"
    )
    execution = await begin(world, outer)
    (below,) = await open_all(world)
    await look(world)
    worker = await world.worker()
    (x,) = await worker.claim(1)

    assert await world.store.cancel(parcel_of(execution), index_of(execution), "no") == ("asked", None)
    assert await steps(world, execution) == {"a": "running", "b": "cancelled", "nap": "waiting"}
    await look(world)
    await look(world)
    assert await steps(world, execution) == {"a": "running", "b": "cancelled", "nap": "cancelled"}
    assert await steps(world, below) == {"x": "running", "y": "cancelled"}
    await worker.report(failed(x))
    assert await state(world, below) == "cancelled"
    assert await state(world, execution) == "cancelled"
    assert (await world.store.cancel(parcel_of(execution), index_of(execution), "no"))[0] == "final"


async def test_a_queued_workflow_is_cancelled_like_any_execution(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job))
    (receipt,) = await world.submit(flow)

    verdict, _ = await world.store.cancel(parcel_of(receipt.execution_id), 0, "")
    assert verdict == "cancelled"
    assert await open_all(world) == []


async def test_a_workflow_keeps_its_keys_until_it_ends(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), concurrency=1)
    keys = keys_of(envelope_keys(flow.spec.keys, flow.id, flow.spec, b"{}", {}))
    (first,) = await world.submit(flow, keys=keys)
    assert await open_all(world) == [first.execution_id]
    (second,) = await world.submit(flow, keys=keys)
    assert await open_all(world) == []

    worker = await world.worker()
    await worker.report(*map(success, await worker.claim(1)))
    assert await state(world, first.execution_id) == "success"
    assert await open_all(world) == [second.execution_id]


async def test_jobs_that_depend_on_a_workflow_start_when_it_ends(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job))
    await world.job("after", queue="after", dependencies=(str(flow.id),))
    await begin(world, flow)
    assert await run(world, await world.worker()) == ["a", ""]


async def test_large_results_reach_steps_that_refer_to_them(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job, params={"n": "${size(steps.a.result)}"}))
    execution = await begin(world, flow)
    worker = await world.worker()
    (a,) = await worker.claim(1)
    await worker.report(giving("x" * 100_000)(a))

    (b,) = await worker.claim(1)
    assert await params_of(world, b) == {"n": 100_000}
    await worker.report(success(b))
    assert await state(world, execution) == "success"


def _each(slices):
    """Split slices into slices of one item each."""
    return [msgspec.structs.replace(s, lo=i, hi=i + 1) for s in slices for i in range(s.lo, s.hi)]


async def promote(world: World):
    await world.store.promote_due(LONG_AGO, 100, rank)


async def test_a_paused_workflow_starts_nothing_and_goes_on_when_it_is_resumed(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job), step("c", job, after=("a",)))
    execution = await begin(world, flow)
    worker = await world.worker()
    (a,) = await worker.claim(1)

    assert await world.store.change(lambda now: pause(execution, world.env.new_id, now, Consequences()))
    assert await worker.claim(9) == []
    await worker.report(success(a))
    assert sorted((await steps(world, execution)).values()) == ["held", "running", "success"]
    assert await worker.claim(9) == []
    assert await world.store.change(lambda now: resume(execution, world.env.new_id, now, Consequences()))
    await promote(world)
    assert len(await run(world, worker)) == 2
    assert await state(world, execution) == "success"
    assert not await world.store.change(lambda now: pause(execution, world.env.new_id, now, Consequences()))


async def test_a_pause_reaches_the_workflows_below(world: World):
    job = await world.job()
    inner = await workflow(world, step("x", job), step("y", job, after=("x",)), name="inner")
    execution = await begin(world, await workflow(world, step("a", inner), step("b", inner), name="outer"))
    await open_all(world)
    await world.store.change(lambda now: pause(execution, world.env.new_id, now, Consequences()))
    await look(world)
    worker = await world.worker()
    assert await worker.claim(9) == []

    await world.store.change(lambda now: resume(execution, world.env.new_id, now, Consequences()))
    await promote(world)
    assert sorted(await run(world, worker)) == ["x", "x", "y", "y"]
    assert await state(world, execution) == "success"


async def test_the_graph_shows_steps_and_their_waits(world: World):
    job = await world.job()
    flow = await workflow(
        world, step("a", job), step("b", job, after=("a",)), step("c", job, foreach=Foreach(items=[1, 2])),
        step("d", job, after=("b", "c")),
    )  # fmt: skip
    execution = await begin(world, flow)
    worker = await world.worker()
    for _ in range(2):
        world.clock.advance(SECOND)
        await worker.report(*map(success, await worker.claim(9)))

    found = await world.store.read(lambda: read_workflow(execution))
    assert found is not None
    shown = show_graph(
        found.plan, found.held.workflow, found.steps, found.names, found.held.began_at, None, "running", world.now()
    )
    assert shown.critical_path == ["a", "b", "d"]
    assert {node.step: node.status for node in shown.nodes} == {
        "a": "success", "b": "success", "c": "success", "d": "running",
    }  # fmt: skip
    (c,) = [node for node in shown.nodes if node.step == "c"]
    assert (c.kind, c.items.total, c.items.success, c.seconds) == ("foreach", 2, 2, 1.0)
    assert ("b", "d") in {(edge.source, edge.target) for edge in shown.edges}


async def test_a_workflow_does_not_block_its_own_steps_in_a_sequential_queue(world: World):
    job = await world.job()
    await world.store.write(lambda: coarse.put(Limit(sequence=True), queue=job.queue))
    execution = await begin(world, await workflow(world, step("a", job), step("b", job, after=("a",))))
    await look(world)

    assert await run(world, await world.worker()) == ["a", "b"]
    assert await state(world, execution) == "success"


async def test_a_step_report_runs_two_more_statements_than_a_plain_one(world: World):
    job = await world.job()
    worker = await world.worker()

    async def asked(held):
        before = Counter(world.driver.statements)
        reply = await worker.report(success(held), free=1)
        return Counter(world.driver.statements) - before, reply.granted

    await world.submit(job)
    await world.submit(job)
    (one,) = await worker.claim(1)
    plain, (other,) = await asked(one)
    assert not any("flow" in name for name in plain), "what is no step asks for workflows"
    await worker.report(success(other))

    chain = [step(f"s{i}", job, after=(f"s{i - 1}",) if i else ()) for i in range(30)]
    await begin(world, await workflow(world, *chain))
    (first,) = await worker.claim(1)
    hop, (second,) = await asked(first)
    reads = {"lock_workflow_of_child", "workflows_with_steps"}
    writes = {"set_workflow_steps", "set_workflows", "insert parcels", "insert queued"}
    assert (hop - plain).keys() - {"test"} == reads | writes
    await worker.report(success(second))
    await run(world, worker)


async def test_children_are_kept_while_their_parent_is_live_and_deleted_with_it(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("nap", wait=Sleep(span=90 * DAY), after=("a",)))
    execution = await begin(world, flow)
    await run(world, await world.worker())
    world.clock.advance(60 * DAY)
    assert await world.driver.expire(world.now() - 30 * DAY) == 0
    assert len(await world.rows("SELECT id FROM parcels")) == 2

    world.clock.advance(60 * DAY)
    await look(world)
    assert await state(world, execution) == "success"
    world.clock.advance(31 * DAY)
    while await world.driver.expire(world.now() - 30 * DAY):
        pass
    for table in ("parcels", "history", "flows", "flow_steps", "flow_parcels"):
        assert await world.rows(f"SELECT * FROM {table}") == [], table


async def test_a_workflow_in_a_limited_queue_begins_a_moment_later(world: World):
    job = await world.job()
    await world.store.write(lambda: coarse.put(Limit(concurrency=5), queue=job.queue))
    flow = await workflow(world, step("a", job, when="${false}"))
    execution = await begin(world, flow)
    assert await steps(world, execution) == {}

    await look(world)
    assert await steps(world, execution) == {"a": "skipped"}
    assert await state(world, execution) == "success"


async def test_the_graph_of_a_wide_foreach_is_read_by_a_few_statements(world: World):
    job = await world.job()
    execution = await begin(world, await workflow(world, step("a", job, foreach=Foreach(items=list(range(3000))))))
    before = Counter(world.driver.statements)

    found = await world.store.read(lambda: read_workflow(execution))
    assert found is not None
    assert (Counter(world.driver.statements) - before).total() <= 4
    shown = show_graph(
        found.plan, found.held.workflow, found.steps, found.names, found.held.began_at, None, "running", world.now()
    )
    (node,) = shown.nodes
    assert (node.items.total, node.items.remaining) == (3000, 3000)
    assert len(await world.on("queued")) == 3


async def test_a_paused_workflow_that_is_cancelled_runs_its_final_steps(world: World):
    job = await world.job()
    flow = await workflow(world, step("a", job), step("b", job, after=("a",)), last=(step("z", job),))
    execution = await begin(world, flow)
    await world.store.change(lambda now: pause(execution, world.env.new_id, now, Consequences()))

    assert (await world.store.cancel(parcel_of(execution), index_of(execution), "no"))[0] == "asked"
    await look(world)
    assert await run(world, await world.worker()) == ["z"]
    assert await state(world, execution) == "cancelled"
