"""A retry that is cancelled opens its dead letter again, however it is cancelled; the letter can be retried anew."""

from uuid import UUID

import pytest

from horae.engine.executions.reruns import RerunRequest, Reruns
from horae.features.dead_letters.engine.dead_letters import DeadLetters
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.store.executions.leaving import cancel_job
from horae.store.executions.reads.execution_lists import FIRST
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import cancel as workflow_cancel
from tests.engine.objects import executions_of
from tests.engine.test_dead_letters import Submits, fail, ids, job, letters, submits
from tests.engine.test_workflow_letters import fails, flow, reruns
from tests.store_contract.workflow_world import look, open_all, run
from tests.store_contract.world import NAMESPACE, World, cancelled, success

__all__ = ("letters", "reruns", "submits")


async def by_hand(world: World, execution: UUID) -> None:
    await executions_of(world.store).cancel(NAMESPACE, execution)


async def with_all_of_its_job(world: World, execution: UUID) -> None:
    ((job,),) = await world.rows("SELECT job FROM queued")
    await world.store.change(
        lambda now: cancel_job.cancel_pending("queued", job, world.env.new_id, (FIRST, -1), 10, "", now)
    )


async def asked(world: World, execution: UUID):
    """A worker that runs it and is asked to stop."""
    worker = await world.worker("w2")
    (slice,) = await worker.claim(1)
    assert execution_id(slice.parcel, slice.lo) == execution
    assert (await world.store.cancel(parcel_of(execution), index_of(execution), ""))[0] == "asked"
    return worker, slice


async def while_it_runs(world: World, execution: UUID) -> None:
    worker, slice = await asked(world, execution)
    await worker.report(cancelled(slice))


async def on_a_worker_that_is_lost(world: World, execution: UUID) -> None:
    worker, _ = await asked(world, execution)
    await worker.lose()
    await world.store.rescue(worker.session, 10)


WAYS = {
    "before it runs": by_hand,
    "with all of its job": with_all_of_its_job,
    "while it runs": while_it_runs,
    "on a worker that is lost": on_a_worker_that_is_lost,
}


async def again(letters: DeadLetters, reruns: Reruns, how: str, dead: UUID) -> UUID:
    if how == "retry":
        made = (await letters.retry(NAMESPACE, dead)).retried_as
        assert made is not None
        return made
    return (await reruns.rerun(NAMESPACE, dead, RerunRequest(), "ann")).execution_id


@pytest.mark.parametrize("how", ["retry", "rerun"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_letter_whose_retry_is_cancelled_is_open_and_is_retried_anew(
    world: World, letters: DeadLetters, reruns: Reruns, way: str, how: str
):
    made = await job(world)
    (dead,) = await fail(world, made)
    first = await again(letters, reruns, how, dead)
    assert await ids(letters) == []
    await WAYS[way](world, first)
    assert await ids(letters) == [dead]
    assert (await letters.get(NAMESPACE, dead)).retried_as is None

    second = await again(letters, reruns, "retry", dead)
    assert second != first
    assert await again(letters, reruns, "retry", dead) == second, "once"
    worker = await world.worker("w3")
    (slice,) = await worker.claim(5)
    await worker.report(success(slice))
    assert (await ids(letters), (await letters.get(NAMESPACE, dead)).retried_as) == ([], second)


@pytest.mark.parametrize("how", ["retry", "rerun"])
async def test_a_letter_is_open_whose_retry_is_cancelled_before_the_letter_is_marked(
    world: World, letters: DeadLetters, reruns: Reruns, submits: Submits, how: str
):
    (dead,) = await fail(world, await job(world))
    made = []

    async def cancelled_at_once(receipts):
        made.append(receipts[0].execution_id)
        await by_hand(world, made[0])

    submits.then = cancelled_at_once
    if how == "retry":
        assert (await letters.retry(NAMESPACE, dead)).retried_as is None
    else:
        await again(letters, reruns, how, dead)
    assert await ids(letters) == [dead]

    submits.then = None
    assert await again(letters, reruns, "retry", dead) not in made
    assert await ids(letters) == []


async def test_a_workflow_whose_retry_is_cancelled_is_retried_anew_from_what_failed(world: World, letters: DeadLetters):
    worker = await world.worker()
    dead = await fails(world, await flow(world), worker)
    first = (await letters.retry(NAMESPACE, dead)).retried_as
    assert first is not None
    assert await open_all(world) == [first]
    (held,) = await worker.claim(1)
    await world.store.change(lambda now: workflow_cancel.cancel(first, "no", world.env.new_id, now, Consequences()))
    await look(world)
    await worker.report(cancelled(held))
    assert await ids(letters) == [dead]

    second = (await letters.retry(NAMESPACE, dead)).retried_as
    assert second not in (None, first)
    assert await open_all(world) == [second]
    assert await run(world, worker) == ["b", "c"]
    assert await ids(letters) == []
