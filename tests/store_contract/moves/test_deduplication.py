"""Submissions with a common key: unique while live or for a time, debounced, batched, or answered from the cache."""

import asyncio

import msgspec

from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.deduplication import Batch, Cache, Debounce, DeduplicationKey, Unique
from horae.model.executions.submission import Receipt, Submission
from horae.store.executions.deduplication import deduplicate, key_expiry
from horae.store.executions.promote import LONG_AGO
from tests.store_contract.world import TestJob, World, failed, rank, success

SECOND = 1_000_000
HOUR = 3600 * SECOND


async def ask(world: World, job: TestJob, *rules, key: str = "k", items=(b"{}",), **more) -> list[Receipt]:
    """Submit a request for each item, all with this key under each rule."""
    meets = tuple(DeduplicationKey(rule, key) for rule in rules)
    wanted = [
        msgspec.structs.replace(e, deduplication=meets, item=item)
        for e, item in zip(world.wanted(job, len(items), **more), items, strict=True)
    ]
    done = await world.store.submit([Submission(executions=wanted)])
    (answer,) = done.answers
    assert isinstance(answer, list)
    return answer


async def params(world: World, receipt: Receipt) -> bytes:
    (parcel,) = await world.store.parcels([parcel_of(receipt.execution_id)])
    return parcel.items.one(index_of(receipt.execution_id))


async def promote(world: World) -> int:
    return (await world.store.promote_due(LONG_AGO, 100, rank)).rows


async def run(world: World, worker=None, outcome=success, **more) -> None:
    worker = worker or await world.worker()
    granted = await worker.claim(10)
    assert granted
    await worker.report(*(outcome(slice, **more) for slice in granted))


# Unique


async def test_a_key_refers_to_its_execution_while_that_is_live(world: World):
    job = await world.job()
    (first,) = await ask(world, job, Unique())
    (other,) = await ask(world, job, Unique(), key="other")
    (again,) = await ask(world, job, Unique())
    assert (again.execution_id, again.deduplicated, again.state) == (first.execution_id, True, "queued")
    assert other.execution_id != first.execution_id

    worker = await world.worker()
    granted = await worker.claim(2)
    assert (await ask(world, job, Unique()))[0].state == "running"
    await worker.report(*(failed(slice) for slice in granted))

    (anew,) = await ask(world, job, Unique())
    assert not anew.deduplicated
    assert anew.execution_id != first.execution_id


async def test_a_key_refers_to_its_execution_for_a_time_even_after_its_end(world: World):
    job = await world.job()
    (first,) = await ask(world, job, Unique(span=HOUR))
    await run(world)

    world.clock.advance(3599 * SECOND)
    assert (await ask(world, job, Unique(span=HOUR)))[0].execution_id == first.execution_id
    world.clock.advance(1 * SECOND)
    assert (await ask(world, job, Unique(span=HOUR)))[0].execution_id != first.execution_id


async def test_the_latest_submission_replaces_one_that_has_not_begun(world: World):
    job = await world.job()
    rule = Unique(keep="latest")
    (first,) = await ask(world, job, rule, items=(b'{"n":1}',))
    (second,) = await ask(world, job, rule, items=(b'{"n":2}',))

    assert not second.deduplicated
    assert await params(world, second) == b'{"n":2}'
    assert await world.history(parcel_of(first.execution_id)) == [(0, 1, "cancelled", deduplicate.REPLACED)]

    worker = await world.worker()
    (granted,) = await worker.claim(10)
    assert granted.parcel == parcel_of(second.execution_id)
    (third,) = await ask(world, job, rule)
    assert (third.execution_id, third.deduplicated) == (second.execution_id, True)


async def test_the_first_or_latest_of_several_in_one_request_is_kept(world: World):
    job = await world.job()
    items = (b'{"n":1}', b'{"n":2}', b'{"n":3}')
    first = await ask(world, job, Unique(), items=items)
    latest = await ask(world, job, Unique(keep="latest"), key="other", items=items)

    assert [r.deduplicated for r in first] == [False, True, True]
    assert [r.deduplicated for r in latest] == [True, True, False]
    for receipts, kept in ((first, items[0]), (latest, items[2])):
        assert len({r.execution_id for r in receipts}) == 1
        assert await params(world, receipts[0]) == kept
    assert sum(s.hi - s.lo for s in await world.on("queued")) == 2


async def test_a_key_of_the_submission_and_one_of_the_job_name_the_same_execution(world: World):
    job = await world.job()
    (first,) = await ask(world, job, Unique())
    own = msgspec.structs.replace(world.wanted(job, key="mine")[0], deduplication=(DeduplicationKey(Unique(), "k"),))
    done = await world.store.submit([Submission(executions=[own])])
    again = await world.submit(job, key="mine")

    assert {done.answers[0][0].execution_id, again[0].execution_id} == {first.execution_id}


async def test_two_concurrent_servers_create_one_execution(world: World):
    job = await world.job()
    answers = await asyncio.gather(*(ask(world, job, Unique()) for _ in range(8)))

    assert len({answer[0].execution_id for answer in answers}) == 1
    assert [answer[0].deduplicated for answer in answers].count(False) == 1
    assert len(await world.on("queued")) == 1


# Debounce


async def test_submissions_of_a_window_become_one_execution_after_a_pause(world: World):
    job = await world.job()
    rule = Debounce(wait=5 * SECOND)
    (first,) = await ask(world, job, rule, items=(b'{"n":1}',))
    assert (first.state, first.deduplicated) == ("waiting", False)
    world.clock.advance(4 * SECOND)
    (second,) = await ask(world, job, rule, items=(b'{"n":22}',))
    assert (second.execution_id, second.deduplicated) == (first.execution_id, True)

    world.clock.advance(4 * SECOND)
    assert await promote(world) == 0
    world.clock.advance(1 * SECOND)
    assert await promote(world) == 1
    assert await params(world, first) == b'{"n":22}'
    (queued,) = await world.on("queued")
    assert queued.width == len(b'{"n":22}')


async def test_a_window_can_keep_the_first_params(world: World):
    job = await world.job()
    rule = Debounce(wait=5 * SECOND, keep="first")
    (first, *_) = await ask(world, job, rule, items=(b'{"n":1}', b'{"n":2}'))
    await ask(world, job, rule, items=(b'{"n":3}',))
    assert await params(world, first) == b'{"n":1}'


async def test_no_window_is_delayed_beyond_its_bound(world: World):
    job = await world.job()
    rule = Debounce(wait=5 * SECOND, most=8 * SECOND)
    (first,) = await ask(world, job, rule)
    for _ in range(2):
        world.clock.advance(4 * SECOND)
        assert (await ask(world, job, rule))[0].execution_id == first.execution_id
    assert await promote(world) == 1


async def test_an_execution_that_left_its_window_is_not_changed(world: World):
    job = await world.job()
    rule = Debounce(wait=5 * SECOND)
    (first,) = await ask(world, job, rule, items=(b'{"n":1}',))
    world.clock.advance(5 * SECOND)
    await promote(world)
    (second,) = await ask(world, job, rule, items=(b'{"n":2}',))

    assert second.execution_id != first.execution_id
    assert await params(world, first) == b'{"n":1}'
    (cancelled, _) = await world.store.cancel(parcel_of(second.execution_id), 0, "no")
    assert cancelled == "cancelled"
    (third,) = await ask(world, job, rule, items=(b'{"n":3}',))
    assert third.execution_id != second.execution_id


# Batch


async def test_a_batch_is_closed_when_it_is_full_or_its_time_has_come(world: World):
    job = await world.job()
    rule = Batch(size=3, wait=10 * SECOND)
    receipts = await ask(world, job, rule, items=(b'{"n":0}', b'{"n":1}'))
    receipts += await ask(world, job, rule, items=(b'{"n":2}', b'{"n":3}'))

    assert [(r.batched, r.index) for r in receipts] == [(True, 0), (True, 1), (True, 2), (True, 0)]
    full, rest = receipts[0].execution_id, receipts[3].execution_id
    assert [r.execution_id for r in receipts] == [full, full, full, rest]
    assert await promote(world) == 1
    assert await world.states(parcel_of(full)) == ["queued"]
    assert msgspec.json.decode(await params(world, receipts[0])) == {"items": [{"n": 0}, {"n": 1}, {"n": 2}]}
    world.clock.advance(10 * SECOND)
    assert await promote(world) == 1
    assert msgspec.json.decode(await params(world, receipts[3])) == {"items": [{"n": 3}]}
    (after,) = await ask(world, job, rule, items=(b'{"n":4}',))
    assert after.execution_id not in (full, rest)


async def test_a_batch_takes_no_more_bytes_than_a_parcel(world: World):
    job = await world.job()
    large = b'{"a":"' + b"x" * 100_000 + b'"}'
    receipts = []
    for _ in range(4):
        receipts += await ask(world, job, Batch(size=100, wait=SECOND), items=(large,))

    assert [r.index for r in receipts] == [0, 1, 0, 1]
    assert len(await params(world, receipts[0])) == 2 * len(large) + len(b'{"items":[,]}')
    waits = await world.on("waiting")
    assert [slice.width for slice in waits] == [len(await params(world, r)) for r in receipts[::2]]


async def test_concurrent_submissions_are_batched_without_a_loss(world: World):
    job = await world.job()
    rule = Batch(size=5, wait=SECOND)
    items = [b'{"n":%d}' % n for n in range(12)]
    answers = await asyncio.gather(*(ask(world, job, rule, items=(item,)) for item in items))

    places = {(r.execution_id, r.index): item for (r,), item in zip(answers, items, strict=True)}
    assert len(places) == 12
    for (execution, index), item in places.items():
        found = msgspec.json.decode(await params(world, Receipt(execution)))["items"]
        assert found[index] == msgspec.json.decode(item)
    assert len({execution for execution, _ in places}) == 3


# Cache


async def test_a_cached_success_answers_until_its_time_is_over(world: World):
    job = await world.job()
    rule = Cache(ttl=HOUR)
    (first,) = await ask(world, job, rule)
    (beside,) = await ask(world, job, rule)
    assert beside.execution_id != first.execution_id
    await run(world, results=[b'{"x":1}'])

    world.clock.advance(3599 * SECOND)
    (again,) = await ask(world, job, rule)
    assert (again.execution_id, again.cached, again.state) == (first.execution_id, True, "success")
    assert await world.on("queued") == []
    world.clock.advance(1 * SECOND)
    (anew,) = await ask(world, job, rule)
    assert not anew.cached


async def test_failures_are_not_cached_and_cached_results_can_be_discarded(world: World):
    job = await world.job()
    rule = Cache(ttl=HOUR)
    await ask(world, job, rule)
    await run(world, outcome=failed)
    (second,) = await ask(world, job, rule)
    assert not second.cached
    await run(world)
    assert (await ask(world, job, rule))[0].cached
    assert await world.store.write(lambda: key_expiry.forget_results(job.id)) == 1
    assert not (await ask(world, job, rule))[0].cached


async def test_a_result_of_other_params_does_not_answer_for_what_a_unique_key_joined(world: World):
    job = await world.job()
    (first,) = await ask(world, job, Cache(ttl=HOUR), Unique())
    other = (DeduplicationKey(Cache(ttl=HOUR), "other"), DeduplicationKey(Unique(), "k"))
    wanted = msgspec.structs.replace(world.wanted(job)[0], deduplication=other)
    (answer,) = (await world.store.submit([Submission(executions=[wanted])])).answers
    assert answer[0].execution_id == first.execution_id
    await run(world)

    (anew,) = await ask(world, job, Cache(ttl=HOUR), key="other")
    assert not anew.cached


# Housekeeping


async def test_keys_without_an_execution_are_deleted(world: World):
    job = await world.job()
    await ask(world, job, Unique(), key="live")
    await ask(world, job, Unique(span=HOUR), key="span")
    await ask(world, job, Debounce(wait=SECOND), key="open")
    await ask(world, job, Cache(ttl=HOUR), key="kept")

    async def forget() -> set[str]:
        await world.store.write(lambda: key_expiry.forget(key_expiry.START, 100, world.now()))
        await world.store.write(lambda: key_expiry.expire(world.now(), 100))
        return {row[0] for row in await world.rows("SELECT key FROM meetings")}

    assert await forget() == {"live", "span", "open", "kept"}
    world.clock.advance(1 * SECOND)
    await promote(world)
    await run(world)
    assert await forget() == {"span", "kept"}
    world.clock.advance(3600 * SECOND)
    assert await forget() == set()
