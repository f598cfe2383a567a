"""Bulk requests: their executions are placed like single ones, and the receipts cover all of them."""

from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import MAX_ITEMS, extras_of
from horae.model.executions.submission import Idempotency, NewBulk, Receipt, RepeatedRequest, Submission
from tests.store_contract.world import World, success

HOUR = 3_600_000_000


def lot(world: World, job, count: int, extra: Extra = Extra(), **more) -> NewBulk:  # noqa: B008
    like = world.wanted(job, **more)[0]
    items = [b'{"i":%d}' % i for i in range(count)]
    return NewBulk(envelope=like.envelope, rank_lead=like.rank_lead, items=items, extra=extra)


def ids(receipts: list[Receipt]) -> list:
    return [
        execution_id(parcel_of(r.execution_id), index_of(r.execution_id) + k) for r in receipts for k in range(r.count)
    ]


async def test_a_bulk_request_fills_parcels_in_order(world: World):
    job = await world.job()
    done = await world.store.submit([Submission(executions=[lot(world, job, MAX_ITEMS + 476)])])

    (receipts,) = done.answers
    assert [(r.count, r.state) for r in receipts] == [(MAX_ITEMS, "queued"), (476, "queued")]
    assert [len(parcel) for parcel in done.parcels] == [MAX_ITEMS, 476]
    stored = {parcel.id: parcel for parcel in await world.store.parcels([p.id for p in done.parcels])}
    items = [stored[parcel_of(id)].items.part(index_of(id), index_of(id) + 1)[0] for id in ids(receipts)]
    assert items == [b'{"i":%d}' % i for i in range(MAX_ITEMS + 476)]


async def test_bulk_and_single_executions_in_one_batch_share_a_parcel(world: World):
    job, other = await world.job("a"), await world.job("b")
    said = Extra(tags={"from": "lot"})
    done = await world.store.submit(
        [
            Submission(executions=world.wanted(job)),
            Submission(executions=[lot(world, job, 3, said)]),
            Submission(executions=[lot(world, other, 2)]),
            Submission(executions=[lot(world, job, 2)]),
        ]
    )

    first, second, third, fourth = map(ids, done.answers)
    assert [index_of(id) for id in first + second + fourth] == [0, 1, 2, 3, 4, 5]
    assert len({parcel_of(id) for id in first + second + fourth}) == 1
    assert {parcel_of(id) for id in third} == {done.parcels[1].id}
    (parcel,) = await world.store.parcels([parcel_of(first[0])])
    assert extras_of(parcel.extras, 0, 6) == [Extra(), said, said, said, Extra(), Extra()]


async def test_a_delayed_bulk_request_waits(world: World):
    job = await world.job()
    done = await world.store.submit([Submission(executions=[lot(world, job, 5, due_at=world.now() + HOUR)])])

    (receipts,) = done.answers
    assert [(r.count, r.state) for r in receipts] == [(5, "waiting")]
    assert await world.states(done.parcels[0].id) == ["waiting"] * 5
    assert done.wake_at == world.now() + HOUR


async def test_a_repeated_bulk_request_gets_the_first_answer(world: World):
    job = await world.job()
    own = Idempotency(1, "executions.submit", "k", b"body", world.now() + HOUR)
    asked = [Submission(executions=[lot(world, job, 1500)], idempotency=own)]

    first = (await world.store.submit(asked)).answers[0]
    again = (await world.store.submit(asked)).answers[0]

    assert again == RepeatedRequest(first)
    assert len(await world.on("queued")) == 2


async def test_the_receipt_of_a_repeated_bulk_request_is_split_by_state(world: World):
    job = await world.job()
    own = Idempotency(1, "executions.submit", "k", b"body", world.now() + HOUR)
    asked = [Submission(executions=[lot(world, job, 1500)], idempotency=own)]
    first = (await world.store.submit(asked)).answers[0]
    w = await world.worker(concurrency=2000)
    slice, *_ = await w.claim(100)
    await w.report(success(slice, 10, 20))

    again = (await world.store.submit(asked)).answers[0].answer
    told = [(r.state, r.count) for r in again]
    assert told == [("running", 10), ("success", 10), ("running", 80), ("queued", 924), ("queued", 476)]
    assert again[1].execution_id == execution_id(parcel_of(first[0].execution_id), 10)
