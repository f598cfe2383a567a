"""A failed workflow is one dead letter, whatever failed of it; a run that succeeds closes it."""

from uuid import UUID

import pytest

from horae.engine.executions.reruns import RerunRequest, Reruns
from horae.errors import NotFound
from horae.features.dead_letters.engine.dead_letters import DeadLetters
from horae.model.base.ids import execution_id
from horae.model.workflows.repeats import Foreach
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import cancel as workflow_cancel
from tests.engine.objects import executions_of
from tests.engine.test_dead_letters import Submits, letters, submits
from tests.store_contract.workflow_world import begin, look, open_all, run, state, step, steps, workflow
from tests.store_contract.world import NAMESPACE, World, cancelled, failed

__all__ = ("letters", "submits")
FROM_FAILED = RerunRequest(since="failed")


@pytest.fixture
def reruns(world: World, submits: Submits) -> Reruns:
    return Reruns(world.store, executions_of(world.store), submits)


async def flow(world: World, **more):
    """A workflow whose steps `b` and `c` come after `a`."""
    job = await world.job()
    return await workflow(world, step("a", job), step("b", job, after=("a",)), step("c", job, after=("b",)), **more)


async def ids(letters: DeadLetters, **which) -> list[UUID]:
    return [letter.execution.execution_id for letter in (await letters.list(NAMESPACE, **which)).items]


async def fails(world: World, made, worker, at: str = "b") -> UUID:
    execution = await begin(world, made)
    await run(world, worker, {at: failed})
    assert await state(world, execution) == "failed"
    return execution


async def again(world: World, reruns: Reruns, of: UUID, wish: RerunRequest = FROM_FAILED) -> UUID:
    """Rerun an execution, and begin it."""
    receipt = await reruns.rerun(NAMESPACE, of, wish, "ann")
    assert await open_all(world) == [receipt.execution_id]
    return receipt.execution_id


async def counted(letters: DeadLetters) -> int:
    return sum(group.count for group in (await letters.groups(NAMESPACE)).items)


async def test_a_failed_workflow_is_one_letter_that_names_the_steps(world, letters):
    worker = await world.worker()
    execution = await fails(world, await flow(world), worker)
    (letter,) = (await letters.list(NAMESPACE)).items
    assert (letter.execution.execution_id, await counted(letters)) == (execution, 1)
    (b,) = letter.steps
    assert (b.step, b.error.type) == ("b", "ValueError")
    assert (await letters.get(NAMESPACE, execution)).steps == [b]
    child = await executions_of(world.store).get(NAMESPACE, b.execution_id)
    assert (child.status, child.step, child.parent) == ("failed", "b", execution)
    for act in (letters.get, letters.retry, letters.discard):
        with pytest.raises(NotFound, match='the step "b" of the workflow') as refused:
            await act(NAMESPACE, b.execution_id)
        assert f"horae dlq retry {execution}" in refused.value.remedy


@pytest.mark.parametrize("on_error", ["fail", "finish"])
async def test_items_and_workflows_within_leave_no_letters_of_their_own(world, letters, on_error):
    worker, job = await world.worker(), await world.job()
    inner = await workflow(world, step("deep", job), name="inner")
    each = step("each", job, foreach=Foreach(items=[1, 2, 3]))
    outer = await workflow(world, step("part", inner), each, name="outer", on_error=on_error)
    execution = await begin(world, outer)
    await look(world)
    for _ in range(3):
        await run(world, worker, {"deep": failed, "each": failed})
        await look(world)
    assert await state(world, execution) == "failed"
    assert (await ids(letters), await ids(letters, state="all"), await counted(letters)) == (
        [execution],
        [execution],
        1,
    )
    found = await world.rows("SELECT parcel, lo FROM history WHERE state = 'failed'")
    deep = [execution_id(parcel, lo) for parcel, lo in found if execution_id(parcel, lo) != execution]
    assert deep
    for id in deep:
        with pytest.raises(NotFound) as refused:
            await letters.retry(NAMESPACE, id)
        assert f"horae dlq retry {execution}" in refused.value.remedy, "the outermost"


@pytest.mark.parametrize(("on_error", "ignored"), [("ignore", False), ("fail", True)])
async def test_a_failure_that_its_workflow_ignores_leaves_no_letter(world, letters, on_error, ignored):
    worker, job = await world.worker(), await world.job()
    bad = step("bad", job, ignore_failure=ignored)
    execution = await begin(world, await workflow(world, bad, step("b", job), on_error=on_error))
    await run(world, worker, {"bad": failed})
    assert await state(world, execution) == "success"
    assert (await ids(letters), await counted(letters)) == ([], 0)


async def test_a_rerun_that_succeeds_closes_the_letter_with_links_both_ways(world, letters, reruns):
    worker = await world.worker()
    first = await fails(world, await flow(world), worker)
    second = await again(world, reruns, first)
    assert await run(world, worker) == ["b", "c"]
    assert (await ids(letters), await counted(letters)) == ([], 0)
    assert (await letters.get(NAMESPACE, first)).retried_as == second
    executions = executions_of(world.store)
    assert (await executions.get(NAMESPACE, first)).retried_as == second
    told = await executions.get(NAMESPACE, second)
    assert (told.retry_of, told.rerun_of, told.status) == (first, first, "success")


async def test_a_rerun_that_fails_again_is_the_letter_from_then_on(world, letters, reruns):
    worker = await world.worker()
    first = await fails(world, await flow(world), worker)
    second = await again(world, reruns, first)
    await run(world, worker, {"c": failed})
    assert (await ids(letters), await counted(letters)) == ([second], 1)
    third = await again(world, reruns, first)  # not of the second: it is the same story
    await run(world, worker)
    assert await state(world, third) == "success"
    assert (await ids(letters), (await letters.get(NAMESPACE, second)).retried_as) == ([], third)


@pytest.mark.parametrize("begun", [True, False])
async def test_a_rerun_that_is_cancelled_leaves_the_letter_open(world, letters, reruns, begun):
    worker = await world.worker()
    first = await fails(world, await flow(world), worker)
    executions = executions_of(world.store)
    if begun:
        second = await again(world, reruns, first)
        held = await worker.claim(1)
        await world.store.change(
            lambda now: workflow_cancel.cancel(second, "no", world.env.new_id, now, Consequences())
        )
        await look(world)
        await worker.report(cancelled(held[0]))
    else:
        second = (await reruns.rerun(NAMESPACE, first, FROM_FAILED, "ann")).execution_id
        await executions.cancel(NAMESPACE, second)
    assert await state(world, second) == "cancelled"
    assert await ids(letters) == [first]
    third = await again(world, reruns, second if begun else first)
    await run(world, worker)
    assert await state(world, third) == "success"
    assert await ids(letters) == []


async def test_a_retry_of_a_workflows_letter_goes_on_from_what_failed(world, letters):
    worker = await world.worker()
    first = await fails(world, await flow(world), worker)
    letter = await letters.retry(NAMESPACE, first, caller="ann")
    assert (await letters.retry(NAMESPACE, first)).retried_as == letter.retried_as, "once"
    assert await open_all(world) == [letter.retried_as]
    assert await steps(world, letter.retried_as) == {"a": "success", "b": "running", "c": "pending"}
    assert await run(world, worker) == ["b", "c"]
    told = await executions_of(world.store).get(NAMESPACE, letter.retried_as)
    assert (told.retry_of, told.rerun_of, told.origin) == (first, first, "retry")


async def test_many_letters_of_workflows_go_on_from_what_failed(world, letters):
    worker, made = await world.worker(), await flow(world)
    first = [await fails(world, made, worker) for _ in range(3)]
    done = await letters.retry_many(NAMESPACE)
    assert (done.matched, done.done) == (3, 3)
    assert len(await open_all(world)) == 3
    assert sorted(await run(world, worker)) == ["b", "b", "b", "c", "c", "c"], "and a is taken over"
    assert await ids(letters) == []
    assert sorted(await ids(letters, state="retried")) == sorted(first)


async def test_a_rerun_of_anything_that_failed_closes_its_letter(world, letters, reruns):
    worker, job = await world.worker(), await world.job()
    await world.submit(job)
    (slice,) = await worker.claim(1)
    await worker.report(failed(slice))
    dead = execution_id(slice.parcel, slice.lo)
    assert await ids(letters) == [dead]
    made = await reruns.rerun(NAMESPACE, dead, RerunRequest(), "ann")
    assert (await letters.get(NAMESPACE, dead)).retried_as == made.execution_id
    assert await ids(letters) == []
