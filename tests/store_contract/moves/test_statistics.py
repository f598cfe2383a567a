"""Statistics on every store: each writer replaces its own rows; reads add them up, and old rows are deleted."""

from horae.env import SECOND
from horae.features.statistics.store import reads as statistics_reads
from horae.features.statistics.store import statistics
from horae.model.base.ids import execution_id
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions.tally import DAY, HOUR, MINUTE, JobTally, NamespaceTally, OutcomeCounts, begin_of
from horae.store.executions.reads import live_reads
from horae.store.executions.reads.live_reads import QueueLoad
from horae.store.executions.state_changes import QueueWait, RetriedAttempts
from horae.store.expiry.expiry import Cutoffs
from tests.store_contract.world import NAMESPACE, World, began, failed, progress, success


def of_job(*micros: int, **counts: int) -> JobTally:
    tally = JobTally(**counts)
    for each in micros:
        tally.durations.add(each)
    return tally


async def test_rows_of_jobs_are_replaced_by_their_writer_and_added_up(world: World):
    job, a, b = (world.env.new_id() for _ in range(3))
    at = begin_of(world.now(), HOUR)
    for writer, tally in ((a, of_job(9, success=1)), (a, of_job(9, 9, success=2)), (b, of_job(5, failed=1, retried=3))):
        rows = [((job, HOUR, at), tally), ((job, DAY, begin_of(at, DAY)), tally)]
        await world.store.write(lambda: statistics.put_jobs(writer, rows))  # noqa: B023

    found = await world.store.read(lambda: statistics_reads.of_job(job, HOUR, at, at + 1, HOUR))
    listed = await world.store.read(lambda: statistics_reads.of_jobs([job, a], world.now()))
    counted = await world.store.read(lambda: statistics_reads.counts_of_job(job, HOUR, at, at + 1))

    assert found == {at: of_job(9, 9, 5, success=2, failed=1, retried=3)}
    assert listed == {job: found[at], a: JobTally()}
    assert counted == {at: OutcomeCounts(success=2, failed=1, retried=3)}
    assert await world.store.read(lambda: statistics_reads.of_job(job, HOUR, at + 1, at + 2, HOUR)) == {}


async def test_rows_of_namespaces_are_added_up_by_points(world: World):
    at, writer = begin_of(world.now(), HOUR), world.env.new_id()
    first, second = NamespaceTally(success=1, queued=7), NamespaceTally(success=2, lost=1)
    first.add_lag(5 * SECOND, 2)
    second.waits.add(3)
    rows = [((1, MINUTE, at), first), ((1, MINUTE, at + 60 * SECOND), second), ((2, MINUTE, at), second)]
    await world.store.write(lambda: statistics.put_namespaces(writer, rows))

    found = await world.store.read(lambda: statistics_reads.of_namespace(1, MINUTE, at, at + HOUR * SECOND, 120))

    first.join(second)
    assert found == {at: first}


async def test_spans_are_deleted_after_their_retention_in_batches(world: World):
    job, now = world.env.new_id(), world.now()
    ages = {MINUTE: (1, 2), HOUR: (99, 101), DAY: (101, 399, 401)}  # days
    of_jobs = [((job, span, now - ago * DAY * SECOND), JobTally()) for span in (HOUR, DAY) for ago in ages[span]]
    of_all = [((1, MINUTE, now - ago * DAY * SECOND), NamespaceTally()) for ago in ages[MINUTE]]
    await world.store.write(lambda: statistics.put_jobs(job, of_jobs))
    await world.store.write(lambda: statistics.put_namespaces(job, of_all))

    assert await world.store.write(lambda: statistics.sweep(Cutoffs(now, now, now), most=1))
    assert not await world.store.write(lambda: statistics.sweep(Cutoffs(now, now, now), most=1))

    assert len(await world.rows("SELECT 1 FROM job_spans")) == 3
    assert len(await world.rows("SELECT 1 FROM namespace_spans")) == 1


async def test_the_newest_executions_of_jobs_are_found(world: World):
    job, other = await world.job(), await world.job("other")
    parcel = await world.parcel(job, 30)
    worker = await world.worker()
    (slice,) = await worker.claim(30)
    at = world.now()
    times = {"started_at": [at] * 30, "ended_at": [at + n for n in range(30)]}
    await worker.report(success(slice, **times))

    found = await world.store.read(lambda: statistics_reads.recent_of([job.id, other.id]))

    assert found[other.id] == []
    assert [one.id for one in found[job.id]] == [execution_id(parcel, n) for n in range(10, 30)]
    assert [one.took for one in found[job.id]] == list(range(10, 30))


async def test_effects_of_reports_and_rescues_suffice_for_statistics(world: World):
    job = await world.job(retry=RetryPolicy(retries=1))
    await world.submit(job, 4)
    worker = await world.worker()
    world.clock.advance(2 * SECOND)
    slices = await worker.claim(4)
    await worker.exchange(started=[began(slice, world.now(), slice.lo, slice.lo + 1) for slice in slices])
    (slice, *_) = slices
    assert worker.effects.waited == [QueueWait(job.id, NAMESPACE, 2 * SECOND, 1)]
    world.clock.advance(SECOND)

    await worker.report(success(slice, 0, 2), failed(slice, 2, 3), policies=job.policy)
    assert [one.waited for one in worker.effects.ended] == [None, 2 * SECOND], (
        "except for the execution with an earlier reported start"
    )
    assert {span for one in worker.effects.ended for span in one.spans} <= {0, SECOND}
    assert worker.effects.repeats == [RetriedAttempts(job.id, NAMESPACE, 1)]
    await worker.lose()
    rescued = await world.store.rescue(worker.session, 10)
    assert rescued is not None
    assert rescued.repeats == [RetriedAttempts(job.id, NAMESPACE, 1, "lost")]


async def test_live_executions_are_counted_by_namespace_and_queue(world: World):
    job = await world.job()
    await world.submit(job, 5)
    await world.submit(job, due_at=world.now() + HOUR * SECOND)
    first = world.now()
    worker = await world.worker()
    (slice,) = await worker.claim(2)
    world.clock.advance(SECOND)
    noted = [progress(slice, slice.lo, 50.0)]
    await worker.exchange(started=[began(slice, world.now())], progress=noted)

    found = (await world.store.read(live_reads.live_counts))[NAMESPACE]
    longest = await world.store.read(lambda: live_reads.longest_running(NAMESPACE))

    assert list(found.queues.values()) == [QueueLoad(queued=3, oldest=first, running=2)]
    assert (found.queued, found.running, found.waiting, found.retrying) == (3, 2, 1, 0)
    assert [(one.job, one.job_name, one.percent) for one in longest] == [(job.id, "job", 50.0)]
    await worker.report(failed(slice))
