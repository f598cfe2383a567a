"""Limits as they are changed while work is there."""

from collections.abc import AsyncIterator, Awaitable
from uuid import UUID

import pytest

from horae.model.ids import execution_id
from tests.engine.explain_stage import Stage, staged
from tests.store_contract.world import NAMESPACE, TestJob, World


@pytest.fixture(params=("memory", "postgres"))
def store_url(request: pytest.FixtureRequest) -> str:
    return "sqlite://" if request.param == "memory" else request.getfixturevalue("emptied_database")


@pytest.fixture
async def stage(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async with staged(world, monkeypatch) as made:
        yield made


async def later(stage: Stage, made: Awaitable[UUID]) -> UUID:
    """Made a moment after what was made before: what comes first goes first."""
    stage.world.clock.advance(1)
    return await made


async def started(stage: Stage, id: UUID) -> bool:
    """Whether it runs when a worker has asked once more."""
    await stage.workers[0].ask()
    return await stage.runs(id)


async def test_a_job_that_is_limited_while_it_has_a_backlog_runs_no_more_than_it_says_now(stage: Stage):
    await stage.job()
    worker = await stage.worker(slots=3)
    first, second, third = [await later(stage, stage.submit()) for _ in range(3)]
    await worker.ask(free=1)
    assert await stage.runs(first)

    await stage.node.jobs.edit(NAMESPACE, "job", {"concurrency": 1})
    await stage.look()
    worker.free = 2
    assert not await started(stage, second)
    assert list(await stage.blockers(third)) == ["limit"]

    await worker.end()
    assert await stage.starts(second)
    assert not await started(stage, third)


async def test_what_was_accepted_just_then_comes_under_the_limit_a_moment_later(stage: Stage):
    job = await stage.job()
    stored = await stage.node.store.job(job, NAMESPACE)
    assert stored is not None
    await stage.worker(slots=3)
    await stage.node.jobs.edit(NAMESPACE, "job", {"concurrency": 1})
    await stage.look()
    before = TestJob(id=job, spec=stored.job.spec, queue=stored.queue, lane=stored.lane, version=2)
    late = [execution_id(await later(stage, stage.world.parcel(before)), 0) for _ in range(2)]

    await stage.pass_time(4)
    await stage.look()
    assert await stage.starts(late[0])
    assert not await started(stage, late[1])
