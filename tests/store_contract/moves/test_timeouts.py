"""Executions that no worker holds end once, with the timeout's name, when their time is over."""

import asyncio

from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.limits import KeyLimit, key_name
from horae.model.base.ids import parcel_of
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.timeouts import RECHECK_INTERVAL, Timeouts
from horae.model.executions.deduplication import Debounce
from tests.store_contract.moves.test_deduplication import ask
from tests.store_contract.workflow_world import begin, state, step, workflow
from tests.store_contract.world import World, failed, rank, released, spans, success

SECOND = 1_000_000
QUEUE = {"timeouts": Timeouts(queue=10 * SECOND)}


async def look(world: World) -> int:
    """Check all due timeouts, and return the number of items that ended."""
    _, effects = await world.store.end_overdue(10)
    await world.check()
    return sum(one.hi - one.lo for one in effects.ended)


async def test_executions_queued_for_too_long_end(world: World):
    parcel = await world.parcel(await world.job(**QUEUE), 5)
    world.clock.advance(10 * SECOND - 1)
    assert await look(world) == 0
    world.clock.advance(1)

    assert await look(world) == 5
    assert await world.history(parcel) == [(0, 5, "failed", "queueTimeout")]
    assert await world.rows("SELECT parcel FROM timeouts") == []
    assert await look(world) == 0


async def test_a_job_without_timeouts_adds_no_row(world: World):
    await world.parcel(await world.job(timeout=SECOND), 5)

    assert await world.rows("SELECT parcel FROM timeouts") == []


async def test_executions_claimed_in_time_go_on(world: World):
    parcel = await world.parcel(await world.job(**QUEUE), 4)
    w = await world.worker()
    (slice,) = await w.claim(3)
    world.clock.advance(10 * SECOND)

    assert await look(world) == 1
    assert await world.states(parcel) == ["running"] * 3 + ["failed"]
    await w.report(success(slice))
    world.clock.advance(10 * SECOND)
    await look(world)
    assert await world.rows("SELECT parcel FROM timeouts") == []


async def test_each_stay_in_the_queue_has_its_own_timeout(world: World):
    job = await world.job(**QUEUE, retry=RetryPolicy(retries=3, delay=5 * SECOND, jitter=0))
    parcel = await world.parcel(job, 1)
    w = await world.worker()
    world.clock.advance(8 * SECOND)
    (slice,) = await w.claim(1)
    await w.report(failed(slice), policies=job.policy)
    world.clock.advance(5 * SECOND)
    await world.store.promote_due(-1, 10, rank)
    assert await look(world) == 0
    world.clock.advance(10 * SECOND - 1)
    assert await look(world) == 0
    world.clock.advance(1)

    assert await look(world) == 1
    assert await world.history(parcel) == [(0, 1, "failed", "queueTimeout")]


async def test_executions_that_return_to_the_queue_are_checked_soon(world: World):
    parcel = await world.parcel(await world.job(timeouts=Timeouts(queue=SECOND)), 2)
    w = await world.worker()
    (slice,) = await w.claim(2)
    world.clock.advance(SECOND)
    assert await look(world) == 0
    await w.report(released(slice))
    world.clock.advance(RECHECK_INTERVAL)

    assert await look(world) == 2
    assert await world.history(parcel) == [(0, 2, "failed", "queueTimeout")]


async def test_all_attempts_together_have_a_timeout(world: World):
    job = await world.job(retry=RetryPolicy(retries=9, delay=0, jitter=0, within=60 * SECOND))
    parcel = await world.parcel(job, 3)
    w = await world.worker()
    (slice,) = await w.claim(2)
    await w.report(failed(slice, 0, 1), policies=job.policy)
    world.clock.advance(60 * SECOND)

    assert await look(world) == 2
    assert await world.history(parcel) == [(0, 1, "failed", "totalTimeout"), (2, 3, "failed", "totalTimeout")]
    await w.report(released(slice, 1, 2))
    world.clock.advance(RECHECK_INTERVAL)
    assert await look(world) == 1
    assert await world.rows("SELECT parcel FROM timeouts") == []


async def test_the_timeout_begins_at_the_due_time(world: World):
    job = await world.job(**QUEUE, retry=RetryPolicy(within=20 * SECOND))
    parcel = await world.parcel(job, 1, due_at=world.now() + 100 * SECOND)
    world.clock.advance(100 * SECOND)
    assert await look(world) == 0
    await world.store.promote_due(-1, 10, rank)
    world.clock.advance(10 * SECOND)

    assert await look(world) == 1
    assert await world.history(parcel) == [(0, 1, "failed", "queueTimeout")]


async def test_executions_at_a_gate_end_when_their_time_is_over(world: World):
    job = await world.job(retry=RetryPolicy(within=20 * SECOND))
    parcel = await world.parcel(job, 2)
    w = await world.worker()
    assert await w.claim(1, paused=frozenset({job.id})) == []
    assert [s.reason for s in await world.on("waiting", parcel)] == ["paused"]
    world.clock.advance(20 * SECOND)

    assert await look(world) == 2


async def test_executions_that_are_handed_over_have_a_timeout_too(world: World):
    job = await world.job(**QUEUE)
    w = await world.worker()
    lanes = frozenset(await world.all_lanes())
    submitted = await world.hand_over(job, 3, w.parked(2, lanes))
    assert spans(submitted.running) == [(0, 2)]
    world.clock.advance(10 * SECOND)

    assert await look(world) == 1


async def test_two_servers_end_each_execution_once(world: World):
    parcels = [await world.parcel(await world.job(f"j{i}", **QUEUE), 3) for i in range(6)]
    world.clock.advance(10 * SECOND)
    ended = []
    while len(ended) < 18:
        for _, effects in await asyncio.gather(*(world.store.end_overdue(2) for _ in range(3))):
            ended += [(e.parcel, i) for e in effects.ended for i in range(e.lo, e.hi)]

    assert sorted(ended) == sorted((parcel, i) for parcel in parcels for i in range(3))


async def test_executions_that_waited_for_the_keys_of_ended_ones_go_on(world: World):
    job = await world.job(**QUEUE, limits=(KeyLimit(key="${params.i}", concurrency=1),))
    keys = EnvelopeKeys(limits=(key_name(job.id, "${params.i}", "a"),))
    first = await world.parcel(job, 1, keys=keys)
    world.clock.advance(5 * SECOND)
    second = await world.parcel(job, 1, keys=keys)
    assert [s.reason for s in await world.on("waiting", second)] == ["limit"]
    world.clock.advance(5 * SECOND)

    assert await look(world) == 1
    assert await world.states(first) == ["failed"]
    assert await world.states(second) == ["queued"]


async def test_debounced_executions_have_a_timeout_too(world: World):
    job = await world.job(retry=RetryPolicy(within=20 * SECOND))
    (made,) = await ask(world, job, Debounce(wait=3600 * SECOND))
    world.clock.advance(20 * SECOND)

    assert await look(world) == 1
    assert await world.history(parcel_of(made.execution_id)) == [(0, 1, "failed", "totalTimeout")]


async def test_a_step_that_is_queued_for_too_long_counts_as_a_step(world: World):
    execution = await begin(world, await workflow(world, step("a", await world.job(**QUEUE))))
    world.clock.advance(10 * SECOND)

    _, effects = await world.store.end_overdue(10)
    assert await state(world, execution) == "failed"
    assert sorted((one.state, one.step) for one in effects.ended) == [("failed", False), ("failed", True)]
