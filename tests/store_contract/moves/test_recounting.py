"""Recounting: missing statistics are computed from history."""

from horae.env import SECOND
from horae.features.statistics.store import reads as statistics_reads
from horae.features.statistics.store import recounting, statistics
from horae.features.statistics.store.recounting import MINUTE
from horae.model.executions.tally import DAY, HOUR, JobTally, OutcomeCounts, begin_of
from horae.model.fleet.server import ServerProcess
from horae.store.fleet import sessions
from tests.store_contract.world import NAMESPACE, World, failed, success


async def live_server(world: World):
    """Record a live server."""
    server = ServerProcess(id=world.env.new_id(), url="", host="h", pid=1, version="1", roles=())
    await world.store.write(lambda: sessions.record_server(server, world.now()))
    return server.id


async def ended(world: World, n: int, how=success):
    """Create executions of a new job that have just ended."""
    job = await world.job(f"job-{world.now()}")
    await world.submit(job, n)
    w = await world.worker()
    for slice in await w.claim(n):
        await w.report(how(slice))
    return job.id


async def recount(world: World, lost, since, until):
    found = await world.store.read(lambda: recounting.ended_within(since, until))
    writer = world.env.new_id()
    return await world.store.write(lambda: recounting.settle(lost, found, since, until, writer))


async def test_missing_statistics_are_written_once(world: World):
    server = await live_server(world)
    job = await ended(world, 5)
    minute = world.now() // MINUTE
    await world.store.write(lambda: statistics.add(server, {(job, minute): JobTally(success=2)}))
    since, until = (minute - 5) * MINUTE, (minute + 1) * MINUTE
    (lost,) = await world.store.read(lambda: recounting.lost_servers(world.env.new_id(), world.now()))

    assert await recount(world, lost, since, until) == {job: OutcomeCounts(success=3)}
    assert await recount(world, lost, since, until) is None

    ((counted,),) = await world.rows("SELECT sum(success) FROM job_minutes")
    assert counted == 5
    for span in (HOUR, DAY):
        at = begin_of(world.now(), span)
        of_job = await world.store.read(lambda: statistics_reads.counts_of_job(job, span, at, at + 1))  # noqa: B023
        assert of_job[at].success == 3, "the wider spans had two already"
    at = begin_of(world.now(), HOUR)
    read = await world.store.read(lambda: statistics_reads.counts_of_namespace(NAMESPACE, HOUR, at, at + 1, HOUR))
    assert read[at].success == 3


async def test_only_the_window_is_recounted(world: World):
    server = await live_server(world)
    await ended(world, 2)
    world.clock.advance(3600 * SECOND)
    job = await ended(world, 3, failed)
    await world.store.write(
        lambda: sessions.record_server(
            ServerProcess(id=server, url="", host="h", pid=1, version="1", roles=()), world.now()
        )
    )
    minute = world.now() // MINUTE
    (lost,) = await world.store.read(lambda: recounting.lost_servers(world.env.new_id(), world.now()))

    told = await recount(world, lost, minute * MINUTE, (minute + 1) * MINUTE)

    assert told == {job: OutcomeCounts(failed=3)}


async def test_a_live_server_is_not_lost(world: World):
    server = await live_server(world)
    before = world.now() - 1

    assert await world.store.read(lambda: recounting.lost_servers(world.env.new_id(), before)) == []
    assert await world.store.read(lambda: recounting.lost_servers(server, world.now())) == []
