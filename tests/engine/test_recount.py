"""Recounts: no counts are lost when a server is killed."""

from uuid import UUID

import pytest

from horae.engine.topics import Topics
from horae.env import SECOND
from horae.features.statistics.engine.recount import Recounter
from horae.features.statistics.engine.statistics import Statistics
from horae.features.statistics.store.reads import counts_by_state
from horae.model.fleet.server import ServerProcess
from horae.store.fleet import sessions
from tests.store_contract.world import NAMESPACE, World, failed, success


@pytest.fixture(params=("memory", "postgres"))
def store_url(request: pytest.FixtureRequest) -> str:
    if request.param == "memory":
        return "sqlite://"
    request.getfixturevalue("wiper").wipe()
    url: str = request.getfixturevalue("engine_database")
    return url


class Server:
    """The counting parts of a server."""

    def __init__(self, world: World) -> None:
        self.world, self.id = world, world.env.new_id()
        topics = Topics(world.store)
        self.failed: list[UUID] = []  # jobs with failures that were not reported
        topics.failed.subscribe("test", self.failed.extend)
        self.statistics = Statistics(world.env, world.store, self.id, topics)
        self.recounter = Recounter(world.env, world.store, self.id, topics)

    async def beat(self) -> None:
        mine = ServerProcess(id=self.id, url="", host="h", pid=1, version="1", roles=())
        await self.world.store.write(lambda: sessions.record_server(mine, self.world.now()))

    async def end(self, job, n: int, how=success) -> None:
        """End executions and count them."""
        await self.world.submit(job, n)
        w = await self.world.worker()
        for slice in await w.claim(n):
            await w.report(how(slice))
            self.statistics.add(w.effects)


async def ended(world: World, of: int | UUID) -> int:
    found = await world.store.read(lambda: counts_by_state(of))
    return found["success"] + found["failed"]


async def test_unwritten_counts_of_a_killed_server_are_recounted(world: World):
    killed, other = Server(world), Server(world)
    job = await world.job()
    await killed.beat()
    await killed.end(job, 4)
    await killed.statistics.step()
    world.clock.advance(4 * SECOND)
    await killed.beat()
    await killed.end(job, 3)  # the server is killed after this
    await other.beat()
    await other.end(job, 2)
    for _ in range(16):
        world.clock.advance(10 * SECOND)
        await other.beat()
        await other.end(job, 1, failed)
        await other.statistics.step()
        await other.recounter.step()

    assert await ended(world, NAMESPACE) == await ended(world, job.id) == 4 + 3 + 2 + 16
    assert await world.rows("SELECT count(*) FROM servers") == [(1,)]


async def test_a_recount_waits_for_minutes_that_other_servers_still_count(world: World):
    killed, other = Server(world), Server(world)
    job = await world.job()
    await killed.beat()
    await killed.end(job, 3)
    world.clock.advance(21 * SECOND)
    await other.beat()
    await other.end(job, 2)  # in the same minute, and not written yet
    await other.recounter.step()
    await other.statistics.step()
    assert await ended(world, NAMESPACE) == 2

    world.clock.advance(120 * SECOND)
    await other.beat()
    await other.recounter.step()
    await other.recounter.step()

    assert await ended(world, NAMESPACE) == 5


async def test_jobs_with_unreported_failures_are_checked(world: World):
    killed, other = Server(world), Server(world)
    job = await world.job()
    await killed.beat()
    await killed.end(job, 1, failed)
    world.clock.advance(600 * SECOND)
    await other.recounter.step()

    assert other.failed == [job.id]


async def test_a_store_of_one_process_is_recounted_before_that_one_counts(world: World):
    killed, other = Server(world), Server(world)
    job = await world.job()
    await killed.beat()
    await killed.end(job, 3)

    await other.recounter.prepare()
    await other.end(job, 2)
    await other.statistics.step()

    alone = world.store.driver.dialect == "sqlite"
    assert await ended(world, NAMESPACE) == (5 if alone else 2)


async def test_a_recount_of_a_clean_server_adds_nothing(world: World):
    stopped, other = Server(world), Server(world)
    job = await world.job()
    await stopped.beat()
    await stopped.end(job, 3)
    await stopped.statistics.close()
    world.clock.advance(600 * SECOND)

    await other.recounter.step()

    assert await ended(world, NAMESPACE) == 3
    assert await world.rows("SELECT count(*) FROM job_spans WHERE span = 86400") == [(1,)]
