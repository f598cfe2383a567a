"""Limits as they are changed while work is there."""

from collections.abc import AsyncIterator

import pytest

from tests.engine.explain_stage import Stage, staged
from tests.store_contract.world import NAMESPACE, World


@pytest.fixture(params=("memory", "postgres"))
def store_url(request: pytest.FixtureRequest) -> str:
    return "sqlite://" if request.param == "memory" else request.getfixturevalue("engine_database")


@pytest.fixture
async def stage(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async with staged(world, monkeypatch) as made:
        yield made


async def test_a_job_that_is_limited_while_it_has_a_backlog_runs_no_more_than_it_says_now(stage: Stage):
    await stage.job()
    worker = await stage.worker(slots=3)
    first, second, third = [await stage.submit() for _ in range(3)]
    await worker.ask(free=1)
    assert await stage.runs(first)

    await stage.node.jobs.edit(NAMESPACE, "job", {"concurrency": 1})
    await stage.look()
    worker.free = 2
    assert not await stage.starts(second)
    assert list(await stage.blockers(third)) == ["limit"]

    await worker.end()
    assert await stage.starts(second)
    assert not await stage.starts(third)
