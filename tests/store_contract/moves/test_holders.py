"""Limits by key and sequences: the executions that keys admit to the queue, and the next ones after an end."""

import pytest

from horae.env import SECOND
from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.limits import KeyLimit, key_name, sequence_name
from horae.model.definitions.retry import RetryPolicy
from horae.store.admission import holder_sweep
from tests.store_contract.world import World, failed, rank, released, spans, success, suspended

MINUTE = 60 * SECOND


async def limited(world: World, concurrency: int = 2, name: str = "sync", **more):
    """Create a job with a limit for each customer; return it with a function that makes keys of customers."""
    job = await world.job(name, limits=(KeyLimit(key="${params.customer}", concurrency=concurrency),), **more)
    return job, lambda customer: EnvelopeKeys(limits=(key_name(job.id, "${params.customer}", customer),))


async def in_sequence(world: World, **more):
    job = await world.job("post", sequence="${params.account}", **more)
    return job, lambda account: EnvelopeKeys(sequence=sequence_name(job.id, account))


async def queued(world: World):
    return [(slice.parcel, slice.lo, slice.hi) for slice in await world.on("queued")]


async def promote(world: World):
    return await world.store.promote_due(0, 1000, rank)


async def test_a_parcel_that_fits_in_part_is_cut_and_its_rest_waits_at_the_key(world: World):
    job, customer = await limited(world)
    receipts = await world.submit(job, 5, keys=customer("acme"))
    assert [(r.state, r.count) for r in receipts] == [("queued", 1)] * 2 + [("waiting", 1)] * 3
    assert spans(await world.on("queued")) == [(0, 2)]
    (rest,) = await world.on("waiting")
    assert (rest.lo, rest.hi, rest.reason, rest.gate) == (2, 5, "limit", customer("acme").limits[0])


async def test_keys_do_not_block_each_other(world: World):
    job, customer = await limited(world, 1)
    for name in ("acme", "bolt", "acme", "bolt"):
        await world.submit(job, keys=customer(name))
    assert len(await world.on("queued")) == 2
    assert len(await world.on("waiting")) == 2
    await world.check()


async def test_an_end_admits_the_next_execution_in_the_same_report(world: World):
    job, customer = await limited(world)
    parcel = await world.parcel(job, 5, keys=customer("acme"))
    worker = await world.worker()
    (first,) = await worker.claim(10)
    assert (first.lo, first.hi) == (0, 2)
    await worker.report(success(first, 0, 1))
    assert spans(await world.on("queued")) == [(2, 3)]
    assert worker.effects.requeued == {job.lane: (await world.on("queued"))[0].rank}
    await worker.report(success(first, 1, 2))
    for _ in range(3):
        for slice in await worker.claim(10):
            await worker.report(success(slice))
    assert await world.states(parcel) == ["success"] * 5
    assert await world.rows("SELECT key FROM holders") == []
    await world.check()


async def test_keys_are_read_once(world: World):
    """Keys are read with the running slices, and the states of a submission are known from the gate."""
    job, customer = await limited(world, 1)
    before = world.driver.statements.copy()
    for _ in range(2):
        await world.submit(job, keys=customer("acme"))
    worker = await world.worker()
    for _ in range(2):
        await worker.report(*map(success, await worker.claim()))

    asked = world.driver.statements - before
    assert asked["keys_of_parcels"] == asked["standing"] == 0
    assert await world.on("waiting") == await world.on("queued") == []


async def test_the_lowest_rank_is_next(world: World):
    job, customer = await limited(world, 1)
    await world.submit(job, keys=customer("acme"))
    await world.submit(job, keys=customer("acme"), priority=1)
    urgent = await world.parcel(job, keys=customer("acme"), priority=9)
    worker = await world.worker()
    (first,) = await worker.claim(10)
    await worker.report(success(first))
    assert [slice.parcel for slice in await world.on("queued")] == [urgent]


async def test_a_retry_gives_its_key_back_and_asks_for_it_again(world: World):
    job, customer = await limited(world, 1, retry=RetryPolicy(retries=3, delay=MINUTE, jitter=0))
    first = await world.parcel(job, keys=customer("acme"))
    second = await world.parcel(job, keys=customer("acme"))
    worker = await world.worker()
    (slice,) = await worker.claim(10)
    await worker.report(failed(slice), policies=job.policy)
    assert await queued(world) == [(second, 0, 1)]
    world.clock.advance(2 * MINUTE)
    await promote(world)
    assert [(w.parcel, w.reason) for w in await world.on("waiting")] == [(first, "limit")]
    (slice,) = await worker.claim(10)
    await worker.report(success(slice))
    assert await queued(world) == [(first, 0, 1)]
    await world.check()


async def test_a_handed_back_execution_keeps_its_key(world: World):
    job, customer = await limited(world, 1)
    first = await world.parcel(job, keys=customer("acme"))
    await world.parcel(job, keys=customer("acme"))
    worker = await world.worker()
    (slice,) = await worker.claim(10)
    await worker.report(released(slice))
    assert await queued(world) == [(first, 0, 1)]
    await world.check()


@pytest.mark.parametrize("losses", [0, 2])
async def test_a_lost_worker_keeps_the_key_for_its_work_or_frees_it_with_its_end(world: World, losses):
    job, customer = await limited(world, 1)
    first = await world.parcel(job, keys=customer("acme"))
    second = await world.parcel(job, keys=customer("acme"))
    await world.do("UPDATE queued SET losses = $1", losses)
    await world.do("UPDATE queued SET alone = $1", losses)
    worker = await world.worker()
    await worker.claim(10)
    await worker.lose()
    await world.store.rescue(worker.session, 100)
    assert await queued(world) == [(second if losses else first, 0, 1)]
    await world.check()


@pytest.mark.parametrize("place", ["queued", "waiting"])
async def test_a_cancelled_execution_releases_its_keys(world: World, place):
    job, customer = await limited(world, 1)
    parcels = []
    for _ in range(3):
        parcels.append(await world.parcel(job, keys=customer("acme")))
        world.clock.advance(SECOND)
    gone = parcels[0] if place == "queued" else parcels[1]
    assert await world.store.cancel(gone, 0, "") == ("cancelled", None)
    assert await queued(world) == [(parcels[1] if place == "queued" else parcels[0], 0, 1)]
    await world.check()


async def test_an_execution_with_several_keys_needs_room_at_each(world: World):
    limits = (KeyLimit(key="a", concurrency=1), KeyLimit(key="b", concurrency=1))
    job = await world.job(limits=limits)
    a, b = key_name(job.id, "a", "x"), key_name(job.id, "b", "x")
    holds_a = await world.parcel(job, keys=EnvelopeKeys(limits=(a,)))
    holds_b = await world.parcel(job, keys=EnvelopeKeys(limits=(b,)))
    both = await world.parcel(job, keys=EnvelopeKeys(limits=tuple(sorted((a, b)))))
    worker = await world.worker()
    held = {slice.parcel: slice for slice in await worker.claim(10)}
    await worker.report(success(held[holds_a]))
    assert await queued(world) == []
    await promote(world)
    (waits,) = await world.on("waiting")
    assert (waits.parcel, waits.gate) == (both, b)
    await worker.report(success(held[holds_b]))
    await promote(world)
    assert await queued(world) == [(both, 0, 1)]
    await world.check()


async def test_an_execution_that_lacks_another_key_does_not_block_those_behind_it(world: World):
    limits = (KeyLimit(key="a", concurrency=1), KeyLimit(key="b", concurrency=1))
    job = await world.job(limits=limits)
    a, b = key_name(job.id, "a", "x"), key_name(job.id, "b", "x")
    holds_a = await world.parcel(job, keys=EnvelopeKeys(limits=(a,)))
    await world.parcel(job, keys=EnvelopeKeys(limits=(b,)))
    await world.parcel(job, keys=EnvelopeKeys(limits=tuple(sorted((a, b)))))
    only_a = await world.parcel(job, keys=EnvelopeKeys(limits=(a,)))
    worker = await world.worker()
    held = {slice.parcel: slice for slice in await worker.claim(10)}
    await worker.report(success(held[holds_a]))
    await promote(world)
    assert await queued(world) == [(only_a, 0, 1)]
    await world.check()


async def test_a_removed_or_raised_limit_admits_waiting_executions(world: World):
    job, customer = await limited(world, 1)
    await world.submit(job, 5, keys=customer("acme"))
    await world.do("UPDATE job_versions SET spec = replace(spec, '\"concurrency\":1', '\"concurrency\":3')")
    keys = await world.store.read(lambda: holder_sweep.gates_of(job.id))
    await world.store.change(lambda now: holder_sweep.admit(keys, now))
    assert sum(slice.hi - slice.lo for slice in await world.on("queued")) == 3
    await world.check()


async def test_a_lowered_limit_stops_nothing_and_admits_nothing_until_it_has_room(world: World):
    job, customer = await limited(world, 3)
    await world.submit(job, 6, keys=customer("acme"))
    await world.do("UPDATE job_versions SET spec = replace(spec, '\"concurrency\":3', '\"concurrency\":1')")
    worker = await world.worker()
    (slice,) = await worker.claim(10)
    await worker.report(success(slice, 0, 2))
    assert await queued(world) == []
    await worker.report(success(slice, 2, 3))
    assert sum(slice.hi - slice.lo for slice in await world.on("queued")) == 1
    await world.check()


async def test_a_sequence_runs_one_at_a_time_in_the_order_of_submission(world: World):
    job, account = await in_sequence(world)
    first = await world.parcel(job, 2, keys=account("a"), priority=0)
    second = await world.parcel(job, 2, keys=account("a"), priority=9)
    other = await world.parcel(job, keys=account("b"))
    worker = await world.worker()
    order = []
    for _ in range(4):
        for slice in await worker.claim(10):
            if slice.parcel != other:
                order.append((slice.parcel, slice.lo))
            await worker.report(success(slice))
    assert order == [(first, 0), (first, 1), (second, 0), (second, 1)]
    assert await world.rows("SELECT key FROM tickets") == []
    await world.check()


async def test_a_sequence_waits_for_the_retry_of_its_first(world: World):
    job, account = await in_sequence(world, retry=RetryPolicy(retries=1, delay=MINUTE, jitter=0))
    first = await world.parcel(job, keys=account("a"))
    second = await world.parcel(job, keys=account("a"))
    worker = await world.worker()
    (slice,) = await worker.claim(10)
    await worker.report(failed(slice), policies=job.policy)
    assert await queued(world) == []
    world.clock.advance(2 * MINUTE)
    await promote(world)
    assert await queued(world) == [(first, 0, 1)]
    (slice,) = await worker.claim(10)
    await worker.report(failed(slice), policies=job.policy)
    assert await queued(world) == [(second, 0, 1)]
    await world.check()


async def test_a_sequence_waits_for_suspended_or_delayed_executions(world: World):
    job, account = await in_sequence(world)
    sleeper = await world.parcel(job, keys=account("a"))
    later = await world.parcel(job, keys=account("a"), due_at=world.now() + MINUTE)
    last = await world.parcel(job, keys=account("a"))
    worker = await world.worker()
    (slice,) = await worker.claim(10)
    await worker.report(suspended(slice, world.now() + SECOND))
    assert await queued(world) == []
    world.clock.advance(2 * SECOND)
    await promote(world)
    assert await queued(world) == [(sleeper, 0, 1)]
    (slice,) = await worker.claim(10)
    await worker.report(success(slice))
    assert await queued(world) == []
    world.clock.advance(MINUTE)
    await promote(world)
    assert await queued(world) == [(later, 0, 1)]
    await world.store.cancel(later, 0, "")
    assert await queued(world) == [(last, 0, 1)]
    await world.check()


async def test_a_sequence_goes_on_when_its_head_is_cancelled_before_its_time(world: World):
    job, account = await in_sequence(world)
    later = await world.parcel(job, 2, keys=account("a"), due_at=world.now() + MINUTE)
    next_one = await world.parcel(job, keys=account("a"))
    await world.store.cancel(later, 0, "")
    assert await queued(world) == []
    await world.store.cancel(later, 1, "")
    assert await queued(world) == [(next_one, 0, 1)]
    await world.check()


async def test_a_deleted_job_leaves_no_keys_behind(world: World):
    from horae.store.executions.leaving import cancel_job

    job, customer = await limited(world, 1)
    await world.submit(job, 3, keys=customer("acme"))
    for shelf in ("waiting", "queued"):
        await world.store.change(
            lambda now, shelf=shelf: cancel_job.cancel_pending(
                shelf, job.id, world.env.new_id, cancel_job.START, 100, "deleted", now
            )
        )
    assert await world.rows("SELECT key FROM holders") == []
    assert await queued(world) == []


async def test_the_sweep_admits_forgotten_executions_and_drops_ended_holders(world: World):
    job, customer = await limited(world, 1)
    first = await world.parcel(job, keys=customer("acme"))
    second = await world.parcel(job, keys=customer("acme"))
    await world.do("DELETE FROM queued WHERE parcel = $1", first)
    found = await world.store.read(lambda: holder_sweep.stale_holders(10))
    assert found.holders == [(customer("acme").limits[0], first)]
    entered = await world.store.change(lambda now: holder_sweep.forget(found, now))
    assert [slice.parcel for slice in entered.queued] == [second]
    await world.do("DELETE FROM parcels WHERE id = $1", first)
    await world.check()


async def test_a_submission_does_not_overtake_waiting_executions(world: World):
    job, customer = await limited(world, 1)
    await world.submit(job, keys=customer("acme"))
    waits = await world.parcel(job, keys=customer("acme"))
    await world.do("UPDATE job_versions SET spec = replace(spec, '\"concurrency\":1', '\"concurrency\":2')")
    await world.submit(job, keys=customer("acme"))
    assert waits in [slice.parcel for slice in await world.on("queued")]
    await world.check()


async def test_hundreds_of_keys_are_locked_at_once(world: World):
    job, customer = await limited(world, 1)
    wanted = [one for i in range(450) for one in world.wanted(job, keys=customer(str(i)))]
    from horae.model.executions.submission import Submission

    await world.store.submit([Submission(executions=wanted)])
    assert len(await world.on("queued")) == 450
    await world.check()
