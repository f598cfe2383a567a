"""Statistics in memory: they are written completely, in limited batches, and a full writer is replaced."""

from unittest.mock import AsyncMock

import pytest

from horae.engine.base.gauges import Gauges
from horae.engine.topics import CancelledCount, Topics
from horae.engine.triggers.fire_forecasts import FireForecasts, count_coming
from horae.env import SECOND
from horae.errors import StoreUnavailable
from horae.features.statistics.engine import tallies as tallying
from horae.features.statistics.engine.statistics import Statistics
from horae.features.statistics.engine.tallies import AT_ONCE, Tallies
from horae.features.statistics.store import reads as statistics_reads
from horae.features.statistics.store import statistics
from horae.model.executions.tally import DAY, HOUR, JOB_SPANS, NAMESPACE_SPANS, JobTally, OutcomeCounts, begin_of
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Cron, Interval
from horae.store.executions.leaving.effects import Effects
from horae.store.executions.state_changes import FinishedItems
from tests.store_contract.world import NAMESPACE, World, add_trigger


@pytest.fixture(params=("memory", "postgres"))
def store_url(request: pytest.FixtureRequest) -> str:
    if request.param == "memory":
        return "sqlite://"
    request.getfixturevalue("wiper").wipe()
    url: str = request.getfixturevalue("engine_database")
    return url


async def test_a_full_writer_is_replaced_by_a_new_one(world: World):
    tallies = Tallies(JOB_SPANS, JobTally, statistics.put_jobs, world.env.new_id, room=4)
    jobs = [world.env.new_id() for _ in range(3)]
    for _ in range(2):
        for job in jobs:
            tallies.add(job, world.now(), JobTally(success=1))
        await tallies.flush(world.store, world.now())

    assert await world.rows("SELECT count(*), count(DISTINCT writer) FROM job_spans") == [(12, 2)]
    listed = await world.store.read(lambda: statistics_reads.of_jobs(jobs, world.now()))
    assert [tally.success for tally in listed.values()] == [2, 2, 2]


async def test_pending_counts_of_a_replaced_writer_count_once(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tallying, "IN_ONE", 2)
    monkeypatch.setattr(tallying, "AT_ONCE", 2)
    tallies = Tallies((DAY,), JobTally, statistics.put_jobs, world.env.new_id, room=4)
    jobs = [world.env.new_id() for _ in range(6)]
    for job in jobs[:2]:
        tallies.add(job, world.now(), JobTally(success=1))
    await tallies.flush(world.store, world.now())
    for job in [*jobs[2:], *jobs[:2]]:  # the first two change again and are written last
        tallies.add(job, world.now(), JobTally(success=1))
    while tallies.is_behind:
        await tallies.flush(world.store, world.now())

    listed = await world.store.read(lambda: statistics_reads.of_jobs(jobs, world.now()))
    assert [tally.success for tally in listed.values()] == [2, 2, 1, 1, 1, 1]


async def test_a_flush_is_bounded_and_the_next_goes_on(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tallying, "IN_ONE", 2)
    monkeypatch.setattr(tallying, "AT_ONCE", 4)
    assert AT_ONCE >= 1000
    tallies = Tallies((HOUR,), JobTally, statistics.put_jobs, world.env.new_id)
    for _ in range(5):
        tallies.add(world.env.new_id(), world.now(), JobTally(success=1))
    await tallies.flush(world.store, world.now())
    assert tallies.is_behind
    assert len(await world.rows("SELECT 1 FROM job_spans")) == 4
    await tallies.flush(world.store, world.now())
    assert not tallies.is_behind
    assert len(await world.rows("SELECT 1 FROM job_spans")) == 5


async def test_a_write_whose_answer_was_lost_is_repeated_and_counts_once(world: World, monkeypatch: pytest.MonkeyPatch):
    topics = Topics(world.store)
    kept = Statistics(world.env, world.store, world.env.new_id(), topics)
    job = (await world.job()).id
    topics.cancelled(CancelledCount(job, 3))
    write = world.store.write

    async def unanswered(make):
        await write(make)
        raise StoreUnavailable("gone", unknown=True)

    with monkeypatch.context() as patch:
        patch.setattr(world.store, "write", unanswered)
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await kept.step()
    await kept.close()

    at = begin_of(world.now(), HOUR)
    assert await world.store.read(lambda: statistics_reads.counts_of_job(job, HOUR, at, at + 1)) == {
        at: OutcomeCounts(cancelled=3)
    }
    of_all = await world.store.read(lambda: statistics_reads.of_namespace(NAMESPACE, HOUR, at, at + 1, HOUR))
    assert of_all[at].cancelled == 3
    assert await world.rows("SELECT cancelled FROM job_minutes") == [(3,)]


async def test_counts_whose_namespace_could_not_be_read_count_once(world: World, monkeypatch: pytest.MonkeyPatch):
    topics = Topics(world.store)
    kept = Statistics(world.env, world.store, world.env.new_id(), topics)
    job = (await world.job()).id
    topics.cancelled(CancelledCount(job, 2))
    with monkeypatch.context() as patch:
        patch.setattr(world.store, "read", AsyncMock(side_effect=StoreUnavailable("gone")))
        with pytest.raises(StoreUnavailable):
            await kept.step()
    topics.cancelled(CancelledCount(job, 3))
    await kept.close()

    at = begin_of(world.now(), HOUR)
    of_all = await world.store.read(lambda: statistics_reads.of_namespace(NAMESPACE, HOUR, at, at + 1, HOUR))
    assert of_all[at].cancelled == 5
    assert await world.rows("SELECT cancelled FROM job_minutes") == [(5,)]


@pytest.mark.parametrize("minutes", [3, 30, 59])
async def test_ends_that_are_reported_late_are_added(world: World, minutes: int):
    kept, job, now = Statistics(world.env, world.store, world.env.new_id(), Topics(world.store)), await world.job(), 0
    for success in (10, 1):
        now = now or world.now()
        ended = FinishedItems(world.env.new_id(), 0, success, job.id, NAMESPACE, "success", 0, at=now)
        kept.add(Effects(ended=[ended]))
        await kept.step()
        world.clock.advance(minutes * 60 * SECOND)
        await kept.step()

    for span in NAMESPACE_SPANS:
        spans = await world.store.read(lambda: statistics_reads.of_namespace(NAMESPACE, span, 0, now + 1, span))  # noqa: B023
        assert [tally.success for tally in spans.values()] == [11]


async def test_a_workflow_that_failed_counts_once_in_its_namespace(world: World):
    flow, job, now = await world.job("flow"), await world.job(), world.now()
    kept = Statistics(world.env, world.store, world.env.new_id(), Topics(world.store))
    for one, steps in ((job, True), (job, True), (flow, False)):
        ended = FinishedItems(world.env.new_id(), 0, 1, one.id, NAMESPACE, "failed", 0, step=steps)
        kept.add(Effects(ended=[ended]))
    await kept.close()
    spans = await world.store.read(lambda: statistics_reads.of_namespace(NAMESPACE, HOUR, 0, now + SECOND, HOUR))
    assert sum(tally.failed for tally in spans.values()) == 1
    (of_job,) = (await world.store.read(lambda: statistics_reads.of_jobs([job.id], 0))).values()
    assert of_job.failed == 2, "a job counts all its failed executions"


async def test_concurrent_requests_share_one_count_of_gauges(world: World):
    topics = Topics(world.store)
    kept = Statistics(world.env, world.store, world.env.new_id(), topics)
    gauges = Gauges(world.env, world.store, world.env.new_id(), topics)
    job = await world.job()
    await world.submit(job, 2)
    assert (await gauges.of(NAMESPACE)).queued == 2
    await world.submit(job)
    assert (await gauges.of(NAMESPACE)).queued == 2
    world.clock.advance(2 * SECOND)
    assert (await gauges.of(NAMESPACE)).queued == 3
    await gauges.step()
    other = Gauges(world.env, world.store, world.env.new_id(), topics)
    await world.submit(job)
    await other.step()
    await kept.step()
    assert await world.rows("SELECT DISTINCT queued FROM namespace_spans") == [(3,)]


async def test_coming_fires_are_counted_by_half_hours(world: World):
    job = await world.job()
    for name, trigger, rules in (
        ("often", Interval(every=60 * SECOND, anchor=0), Rules()),
        ("rarely", Cron(expression="0 */6 * * *"), Rules()),
        ("thrice", Interval(every=3600 * SECOND, anchor=0), Rules(max_fires=3)),
    ):
        await add_trigger(world, job, trigger, name=name, rules=rules)
    coming = FireForecasts(world.env, world.store)

    spans = (await coming.of(NAMESPACE)).spans

    assert [more for _, _, more in spans] == [False] * 24
    assert sum(fires for _, fires, _ in spans) == 24 * 30 - 1 + 2 + 3
    await world.do("DELETE FROM timers")
    assert (await coming.of(NAMESPACE)).spans == spans, "the last count is returned"
    world.clock.advance(120 * SECOND)
    await coming.step()
    assert {fires for _, fires, _ in (await coming.of(NAMESPACE)).spans} == {0}


async def test_an_incomplete_count_is_marked(world: World):
    job = await world.job()
    await add_trigger(world, job, Interval(every=60 * SECOND, anchor=0))
    edges = [world.now(), world.now() + 1, world.now() + 3600 * SECOND]
    cut = await count_coming(world.store, world.env, NAMESPACE, job.id, edges, -1.0)
    assert [more for _, _, more in cut.spans] == [False, True]
