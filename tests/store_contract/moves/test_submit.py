"""Submission: on disk when it returns, each id on exactly one shelf; keys and repeated requests get the
former answer.
"""

import asyncio
from uuid import UUID

import msgspec
import pytest

from horae.model.base.ids import execution_id, index_of, instant_of, parcel_of
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import MAX_BYTES, extras_of
from horae.model.executions.submission import Idempotency, NewBulk, RepeatedRequest, ReusedKey, Submission
from horae.store.executions.entering.idempotency import TwinRequests
from horae.store.executions.entering.submit import JobMoved
from tests.store_contract.world import World, failed, spans, success, suspended

HOUR = 3_600_000_000


def request(*executions, key=None, body=b"1", until=None):
    own = None if key is None else Idempotency(1, "POST /executions", key, body, until)
    return Submission(executions=list(executions), idempotency=own)


async def test_due_executions_are_queued_and_later_ones_wait(world: World):
    job = await world.job()
    now = await world.parcel(job, 3)
    later = await world.parcel(job, 2, due_at=world.now() + HOUR)

    assert await world.states(now) == ["queued"] * 3
    assert await world.states(later) == ["waiting"] * 2
    (waits,) = await world.on("waiting")
    assert (waits.wake_at, waits.reason) == (world.now() + HOUR, "delay")


async def test_the_receipts_tell_the_shelf(world: World):
    job = await world.job()

    assert [r.state for r in await world.submit(job, 2)] == ["queued", "queued"]
    assert [r.state for r in await world.submit(job, due_at=world.now() + 1)] == ["waiting"]


async def test_ids_are_made_by_the_server_at_the_time_of_the_batch(world: World):
    parcel = await world.parcel(await world.job(), 5)

    assert instant_of(parcel) == world.now() // 1000 * 1000
    assert index_of(parcel) == 0


async def test_concurrent_submissions_with_equal_envelopes_share_a_parcel(world: World):
    job, other = await world.job("a"), await world.job("b")
    done = await world.store.submit(
        [
            request(*world.wanted(job)),
            request(*world.wanted(other)),
            request(*world.wanted(job, 2)),
            request(*world.wanted(job, priority=9)),
            request(*world.wanted(job, due_at=world.now() + 1)),
            request(*world.wanted(job, parent=UUID(int=5 << 16))),
        ]
    )

    first, second, third, urgent, later, child = ([r.execution_id for r in answer] for answer in done.answers)
    assert parcel_of(first[0]) == parcel_of(third[0])
    assert [index_of(id) for id in first + third] == [0, 1, 2]
    assert len({parcel_of(ids[0]) for ids in (first, second, urgent, later, child)}) == 5
    assert len(done.parcels) == 5


async def test_fields_of_items_do_not_split_a_parcel(world: World):
    job = await world.job()
    told = [Extra(trace="a"), Extra(trace="b", tags={"x": "y"})]
    executions = [msgspec.structs.replace(e, extra=x) for e, x in zip(world.wanted(job, 2), told, strict=True)]
    done = await world.store.submit([request(*executions)])

    (parcel,) = await world.store.parcels([done.parcels[0].id])
    assert extras_of(parcel.extras, 0, 2) == told


async def test_a_parcel_reads_as_it_was_written(world: World):
    job = await world.job()
    items = [b'{"i": 1}', b'{ "spaces" :  "kept" }', '{"é":"ü"}'.encode()]
    executions = [msgspec.structs.replace(e, item=i) for e, i in zip(world.wanted(job, 3), items, strict=True)]
    done = await world.store.submit([request(*executions)])

    assert await world.store.parcels([done.parcels[0].id]) == done.parcels
    assert done.parcels[0].items.part(0, 3) == items
    assert done.parcels[0].envelope.due_at == world.now()


async def test_large_items_are_split_into_several_parcels(world: World):
    job = await world.job()
    large = b'{"a":"' + b"x" * (MAX_BYTES - 100) + b'"}'
    executions = [msgspec.structs.replace(e, item=large) for e in world.wanted(job, 2)]
    done = await world.store.submit([request(*executions, *world.wanted(job, 2))])

    assert [len(parcel) for parcel in done.parcels] == [1, 2, 1]
    assert len({r.execution_id for r in done.answers[0]}) == 4


async def test_the_answer_names_the_lanes_and_the_next_timer(world: World):
    job = await world.job()
    now = world.now()
    done = await world.store.submit(
        [request(*world.wanted(job, due_at=now + HOUR), *world.wanted(job, due_at=now + 5), *world.wanted(job))]
    )

    (queued,) = await world.on("queued")
    assert done.lanes == {job.lane: queued.rank}
    assert done.wake_at == now + 5


async def test_an_empty_batch_does_nothing(world: World):
    done = await world.store.submit([])
    assert (done.answers, done.parcels, done.lanes, done.wake_at) == ([], [], {}, None)


# Unique keys


async def test_a_key_stands_for_the_first_submission_until_it_expires(world: World):
    job = await world.job()
    (first,) = await world.submit(job, key="k", key_for=10)
    world.clock.advance(9)
    (repeat,) = await world.submit(job, key="k", key_for=10)
    world.clock.advance(1)
    (fresh,) = await world.submit(job, key="k", key_for=10)

    assert not first.deduplicated
    assert (repeat.execution_id, repeat.deduplicated) == (first.execution_id, True)
    assert fresh.execution_id != first.execution_id
    assert not fresh.deduplicated
    assert len(await world.on("queued")) == 2


async def test_a_key_belongs_to_its_job(world: World):
    (one,) = await world.submit(await world.job("a"), key="k")
    (other,) = await world.submit(await world.job("b"), key="k")

    assert one.execution_id != other.execution_id
    assert not other.deduplicated


async def test_a_deduplicated_receipt_has_the_state_of_its_execution(world: World):
    job = await world.job(retry=RetryPolicy(retries=1))
    w = await world.worker()

    async def told():
        (again,) = await world.submit(job, key="k")
        assert again.deduplicated
        return again.state

    (first,) = await world.submit(job, key="k")
    assert (first.state, await told()) == ("queued", "queued")
    (slice,) = await w.claim(1)
    assert await told() == "running"
    await w.report(failed(slice), policies=job.policy)
    assert await told() == "waiting"
    world.clock.advance(HOUR // 100)
    await world.store.promote_due(0, 10, lambda *_: 0)
    (slice,) = await w.claim(1)
    await w.report(suspended(slice, world.now() + 1))
    assert await told() == "running"
    world.clock.advance(1)
    await world.store.promote_due(0, 10, lambda *_: 0)
    (slice,) = await w.claim(1)
    await w.report(success(slice))
    assert await told() == "success"
    await world.do("DELETE FROM history")
    await world.do("DELETE FROM parcels")
    await world.do("DELETE FROM attempts")
    assert await told() == "expired"


async def test_a_deduplicated_receipt_of_a_scheduled_execution_reads_waiting(world: World):
    job = await world.job()
    later = world.now() + HOUR
    asked = [*world.wanted(job, key="k", due_at=later), *world.wanted(job, key="k", due_at=later), *world.wanted(job)]
    done = await world.store.submit([request(*asked)])

    assert [(r.state, r.deduplicated) for r in done.answers[0]] == [
        ("waiting", False), ("waiting", True), ("queued", False)
    ]  # fmt: skip


async def test_a_repeated_request_has_the_states_of_its_executions(world: World):
    job = await world.job()
    until = world.now() + HOUR
    first = await world.store.submit([request(*world.wanted(job, 3), key="r", until=until)])
    w = await world.worker()
    (slice,) = await w.claim(2)
    await w.report(success(slice, 0, 1))
    again = await world.store.submit([request(*world.wanted(job, 3), key="r", until=until)])

    assert [r.execution_id for r in again.answers[0].answer] == [r.execution_id for r in first.answers[0]]
    assert [r.state for r in again.answers[0].answer] == ["success", "running", "queued"]


async def test_twins_in_a_batch_are_one_execution(world: World):
    job = await world.job()
    done = await world.store.submit(
        [request(*world.wanted(job, key="k")), request(*world.wanted(job)), request(*world.wanted(job, key="k"))]
    )

    first, between, twin = (answer[0] for answer in done.answers)
    assert twin.execution_id == first.execution_id
    assert [r.deduplicated for r in (first, between, twin)] == [False, False, True]
    assert spans(await world.on("queued")) == [(0, 2)]


async def test_each_request_of_a_batch_gets_its_own_answer(world: World):
    job = await world.job()
    (held,) = await world.submit(job, key="held")
    done = await world.store.submit(
        [request(*world.wanted(job, key="z")), request(*world.wanted(job, key="held"), *world.wanted(job, key="a"))]
    )

    z, old, a = (r for answer in done.answers for r in answer)
    assert (old.execution_id, old.deduplicated) == (held.execution_id, True)
    assert {index_of(z.execution_id), index_of(a.execution_id)} == {0, 1}
    again = await world.submit(job, key="a")
    assert again[0].execution_id == a.execution_id


async def test_a_refused_batch_takes_no_key(world: World):
    job = await world.job()
    stale = msgspec.structs.replace(job, version=7)
    with pytest.raises(JobMoved):
        await world.store.submit([request(*world.wanted(stale, key="k"))])
    (fresh,) = await world.submit(job, key="k")

    assert not fresh.deduplicated


async def test_one_of_many_concurrent_submissions_gets_the_key(world: World):
    job = await world.job()
    receipts = await asyncio.gather(*(world.submit(job, key="k") for _ in range(8)))

    assert len({r[0].execution_id for r in receipts}) == 1
    assert sum(not r[0].deduplicated for r in receipts) == 1
    assert spans(await world.on("queued")) == [(0, 1)]


async def test_batches_that_name_the_same_keys_in_other_orders_do_not_deadlock(world: World):
    job = await world.job()
    keys = [f"k{n}" for n in range(12)]

    async def batch(turn: int):
        order = keys[turn:] + keys[:turn]
        return await world.store.submit([request(*world.wanted(job, key=key)) for key in order])

    batches = await asyncio.gather(*(batch(turn) for turn in range(6)))

    ids = {r.execution_id for done in batches for answer in done.answers for r in answer}
    assert len(ids) == len(keys)
    assert sum(len(parcel) for done in batches for parcel in done.parcels) == len(keys)


# Idempotency keys


async def test_a_repeated_request_gets_the_stored_answer(world: World):
    job = await world.job()
    until = world.now() + HOUR
    first = await world.store.submit([request(*world.wanted(job, 2), key="r", until=until)])
    again = await world.store.submit([request(*world.wanted(job, 2), key="r", until=until)])

    assert again.answers == [RepeatedRequest(first.answers[0])]
    assert again.parcels == []
    assert spans(await world.on("queued")) == [(0, 2)]


async def test_another_body_under_the_same_key_is_refused(world: World):
    job = await world.job()
    until = world.now() + HOUR
    await world.store.submit([request(*world.wanted(job), key="r", until=until)])
    done = await world.store.submit(
        [request(*world.wanted(job), key="r", body=b"2", until=until), request(*world.wanted(job, 3))]
    )

    assert done.answers[0] == ReusedKey()
    assert len(done.answers[1]) == 3


async def test_an_answer_is_deleted_after_its_retention(world: World):
    job = await world.job()
    first = await world.store.submit([request(*world.wanted(job), key="r", until=world.now() + 5)])
    world.clock.advance(5)
    again = await world.store.submit([request(*world.wanted(job), key="r", body=b"2", until=world.now() + 5)])

    assert isinstance(again.answers[0], list)
    assert again.answers[0][0].execution_id != first.answers[0][0].execution_id


async def test_twin_requests_in_one_batch_are_refused_whole(world: World):
    job = await world.job()
    until = world.now() + HOUR
    with pytest.raises(TwinRequests):
        await world.store.submit(
            [
                request(*world.wanted(job), key="r", until=until),
                request(*world.wanted(job, key="u")),
                request(*world.wanted(job), key="r", until=until),
            ]
        )

    assert await world.on("queued") == []
    assert not (await world.submit(job, key="u"))[0].deduplicated


async def test_one_of_many_concurrent_equal_requests_is_executed(world: World):
    job = await world.job()
    until = world.now() + HOUR
    done = await asyncio.gather(
        *(world.store.submit([request(*world.wanted(job, 2), key="r", until=until)]) for _ in range(6))
    )

    answers = [d.answers[0].answer if isinstance(d.answers[0], RepeatedRequest) else d.answers[0] for d in done]
    assert all(answer == answers[0] for answer in answers)
    assert spans(await world.on("queued")) == [(0, 2)]


async def test_a_repeat_that_was_deduplicated_reads_the_same(world: World):
    job = await world.job()
    until = world.now() + HOUR
    await world.submit(job, key="k")
    first = await world.store.submit([request(*world.wanted(job, key="k"), key="r", until=until)])
    again = await world.store.submit([request(*world.wanted(job, key="k"), key="r", until=until)])

    assert first.answers[0][0].deduplicated
    assert again.answers == [RepeatedRequest(first.answers[0])]


# Jobs that change meanwhile


async def test_an_edited_or_deleted_job_refuses_the_batch(world: World):
    job, fine = await world.job("a"), await world.job("b")
    stale = msgspec.structs.replace(job, version=2)
    with pytest.raises(JobMoved) as moved:
        await world.store.submit([request(*world.wanted(fine)), request(*world.wanted(stale))])
    assert moved.value.jobs == {job.id}

    await world.do("UPDATE jobs SET state = 'deleted' WHERE id = $1", job.id)
    with pytest.raises(JobMoved):
        await world.submit(job)
    assert await world.on("queued") == []


async def test_every_version_in_a_batch_is_checked(world: World):
    job = await world.job()
    stale = msgspec.structs.replace(job, version=2)
    for order in ([job, stale], [stale, job]):
        with pytest.raises(JobMoved):
            await world.store.submit([request(*world.wanted(j)) for j in order])

    assert await world.on("queued") == []


async def test_executions_keep_their_ids_apart(world: World):
    job = await world.job()
    receipts = [r for _ in range(3) for r in await world.submit(job, 4)]

    assert len({r.execution_id for r in receipts}) == 12
    assert {execution_id(parcel_of(r.execution_id), index_of(r.execution_id)) for r in receipts} == {
        r.execution_id for r in receipts
    }


# Lots


def lot(world: World, job, items, **more):
    (one,) = world.wanted(job, **more)
    return NewBulk(envelope=one.envelope, rank_lead=one.rank_lead, items=items)


async def test_a_lot_is_stored_together_and_answered_with_its_range(world: World):
    job = await world.job()
    done = await world.store.submit(
        [
            request(*world.wanted(job, 2)),
            request(lot(world, job, [b'{"a":1}', b'{"a":2}', b'{"a":3}'])),
            request(*world.wanted(job)),
        ]
    )

    (parcel,) = done.parcels
    first, many, last = done.answers
    assert [(index_of(r.execution_id), r.count) for r in first + many + last] == [(0, 1), (1, 1), (2, 3), (5, 1)]
    assert parcel.items.part(2, 5) == [b'{"a":1}', b'{"a":2}', b'{"a":3}']
    assert await world.states(parcel.id) == ["queued"] * 6


async def test_a_lot_too_large_for_one_parcel_is_answered_part_by_part(world: World):
    job = await world.job()
    done = await world.store.submit([request(*world.wanted(job)), request(lot(world, job, [b"{}"] * 2100))])

    assert [len(parcel) for parcel in done.parcels] == [1024, 1024, 53]
    parts = [(parcel_of(r.execution_id), index_of(r.execution_id), r.count) for r in done.answers[1]]
    assert parts == [(p.id, lo, n) for p, lo, n in zip(done.parcels, (1, 0, 0), (1023, 1024, 53), strict=True)]
    assert sum(s.hi - s.lo for s in await world.on("queued")) == 2101


async def test_a_repeated_lot_gets_the_stored_answer(world: World):
    job = await world.job()
    until = world.now() + HOUR
    asked = request(lot(world, job, [b"{}"] * 3, due_at=world.now() + 5), key="r", until=until)
    first = await world.store.submit([asked])
    again = await world.store.submit([asked])

    assert again.answers == [RepeatedRequest(first.answers[0])]
    assert [(r.state, r.count) for r in first.answers[0]] == [("waiting", 3)]
    assert spans(await world.on("waiting")) == [(0, 3)]


async def test_the_job_of_a_lot_is_checked(world: World):
    stale = msgspec.structs.replace(await world.job(), version=2)
    with pytest.raises(JobMoved):
        await world.store.submit([request(lot(world, stale, [b"{}"]))])
