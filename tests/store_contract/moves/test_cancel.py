"""Cancel: items that have not begun end at once, running items are asked to stop, ended items do not change."""

import asyncio
from typing import Any

import pytest

from horae.errors import Busy
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions.slice import QueuedSlice
from horae.store.base import shelves
from horae.store.script import Script
from tests.store_contract.world import World, cancelled, failed, rank, released, spans, success, suspended


async def test_a_queued_item_ends_and_its_neighbours_stay(world: World):
    parcel = await world.parcel(await world.job(), 5)
    (before,) = await world.on("queued", parcel)

    assert await world.store.cancel(parcel, 2, "by hand") == ("cancelled", None)
    assert await world.history(parcel) == [(2, 3, "cancelled", "by hand")]
    left = await world.on("queued", parcel)
    assert spans(left) == [(0, 2), (3, 5)]
    assert {(s.rank, s.queued_at, s.attempt) for s in left} == {(before.rank, before.queued_at, 0)}


async def test_a_waiting_item_ends_and_its_neighbours_keep_waiting(world: World):
    parcel = await world.parcel(await world.job(), 3, due_at=world.now() + 60)

    for item in (0, 2, 1):
        assert await world.store.cancel(parcel, item, "") == ("cancelled", None)
    assert await world.states(parcel) == ["cancelled"] * 3
    assert await world.on("waiting") == []


async def test_a_retry_in_backoff_can_be_cancelled(world: World):
    job = await world.job(retry=RetryPolicy(retries=3))
    parcel = await world.parcel(job, 2)
    w = await world.worker()
    (slice,) = await w.claim(2)
    await w.report(failed(slice), policies=job.policy)
    await world.store.cancel(parcel, 0, "")

    assert await world.states(parcel) == ["cancelled", "waiting"]


async def test_a_running_item_is_asked_to_stop(world: World):
    parcel = await world.parcel(await world.job(), 3)
    w = await world.worker()
    await w.claim(3)

    assert await world.store.cancel(parcel, 1, "") == ("asked", w.session)
    assert await world.states(parcel) == ["running"] * 3
    assert (await world.store.requests_of([w.session]))[w.session] == [(parcel, 1, 1, "cancel")]


@pytest.mark.parametrize("said", [cancelled, failed, released])
async def test_the_reason_for_stopping_a_running_item_is_stored(world: World, said: Any):
    """The outcome of the worker and a second request do not change the reason."""
    parcel = await world.parcel(await world.job(), 3)
    w = await world.worker()
    (slice,) = await w.claim(3)
    await world.store.cancel(parcel, 0, "wrong file")
    await world.store.cancel(parcel, 1, "too late")
    await world.store.cancel(parcel, 1, "never mind")
    await w.report(said(slice, 0, 2), success(slice, 2, 3))

    assert await world.history(parcel) == [
        (0, 1, "cancelled", "wrong file"), (1, 2, "cancelled", "too late"), (2, 3, "success", ""),
    ]  # fmt: skip


async def test_the_reason_for_stopping_is_stored_when_the_worker_is_lost(world: World):
    parcel = await world.parcel(await world.job())
    w = await world.worker()
    await w.claim()
    await world.store.cancel(parcel, 0, "wrong file")
    await w.lose()
    await world.store.rescue(w.session, 10)

    assert await world.history(parcel) == [(0, 1, "cancelled", "wrong file")]


async def test_cancelling_an_item_that_keeps_moving_raises_busy(world: World):
    """Otherwise the search for an item on no shelf would never end."""
    parcel = await world.parcel(await world.job())
    (lost,) = await world.on("queued")
    await world.do("DELETE FROM queued")

    cancelling = asyncio.ensure_future(world.store.cancel(parcel, 0, ""))
    while not cancelling.done():
        world.clock.advance(1000)
        await asyncio.sleep(0)
    with pytest.raises(Busy, match="changed its state"):
        await cancelling

    await world.store.write(lambda: _put_back(lost))
    assert await world.store.cancel(parcel, 0, "") == ("cancelled", None)


def _put_back(slice: QueuedSlice) -> Script[None]:
    yield shelves.put_queued([slice])


async def test_a_second_request_changes_nothing(world: World):
    parcel = await world.parcel(await world.job())
    w = await world.worker()
    await w.claim()
    for _ in range(3):
        assert await world.store.cancel(parcel, 0, "") == ("asked", w.session)

    assert len((await world.store.requests_of([w.session]))[w.session]) == 1


async def test_a_request_is_deleted_with_its_attempt(world: World):
    parcel = await world.parcel(await world.job(), 3)
    w = await world.worker()
    (slice,) = await w.claim(3)
    for item in (0, 1):
        await world.store.cancel(parcel, item, "")
    await w.report(cancelled(slice, 0, 1), success(slice, 1, 2))

    assert await world.states(parcel) == ["cancelled", "success", "running"]
    assert (await world.store.requests_of([w.session]))[w.session] == []


async def test_an_item_that_fails_after_being_asked_is_not_retried(world: World):
    job = await world.job(retry=RetryPolicy(retries=5))
    parcel = await world.parcel(job, 3)
    w = await world.worker()
    (slice,) = await w.claim(3)
    await world.store.cancel(parcel, 1, "")
    await w.report(failed(slice), policies=job.policy)

    assert await world.states(parcel) == ["waiting", "cancelled", "waiting"]


async def test_an_item_that_is_handed_back_or_sleeps_after_being_asked_does_not_go_on(world: World):
    parcel = await world.parcel(await world.job(), 4)
    w = await world.worker()
    (slice,) = await w.claim(4)
    for item in (0, 2):
        await world.store.cancel(parcel, item, "")
    await w.report(released(slice, 0, 2), suspended(slice, world.now() + 9, 2, 4))

    assert await world.states(parcel) == ["cancelled", "queued", "cancelled", "running"]
    assert (await world.store.requests_of([w.session]))[w.session] == []


async def test_a_request_to_an_earlier_attempt_does_not_block_a_new_one(world: World):
    job = await world.job(retry=RetryPolicy(retries=5, delay=1))
    parcel = await world.parcel(job, 2)
    first, second = await world.worker("a"), await world.worker("b")
    (slice,) = await first.claim(2)
    await world.store.cancel(parcel, 0, "")
    await first.lose()
    await world.store.rescue(first.session, 10)
    (slice,) = await second.claim(1)

    assert slice.lo == 1
    assert await world.store.cancel(parcel, 1, "") == ("asked", second.session)
    assert (await world.store.requests_of([second.session]))[second.session] == [(parcel, 1, 2, "cancel")]


async def test_an_ended_item_stays_as_it_ended(world: World):
    parcel = await world.parcel(await world.job(), 2)
    w = await world.worker()
    (slice,) = await w.claim(2)
    await w.report(success(slice, 0, 1), failed(slice, 1, 2))

    assert await world.store.cancel(parcel, 0, "") == ("final", None)
    assert await world.store.cancel(parcel, 1, "") == ("final", None)
    assert await world.states(parcel) == ["success", "failed"]


async def test_a_missing_item_is_unknown(world: World):
    parcel = await world.parcel(await world.job(), 2)

    assert await world.store.cancel(parcel, 2, "") == ("unknown", None)
    assert await world.store.cancel(world.env.new_id(), 0, "") == ("unknown", None)


async def test_a_paused_item_is_cancelled_at_its_gate(world: World):
    job = await world.job()
    parcel = await world.parcel(job, 2)
    w = await world.worker()
    await w.claim(2, paused=frozenset({job.id}))
    await world.store.cancel(parcel, 1, "")
    await world.store.open_gate(job.id, 10, rank)

    assert await world.states(parcel) == ["queued", "cancelled"]


async def test_cancel_finds_an_item_that_is_being_claimed_and_reported(world: World):
    job = await world.job()
    w = await world.worker()

    async def run(n):
        for slice in await w.claim(9, channel=n):
            await w.report(success(slice), channel=n)

    for _ in range(4):
        parcel = await world.parcel(job, 3)
        verdicts, _, _ = await asyncio.gather(
            asyncio.gather(*(world.store.cancel(parcel, item, "") for item in range(3))), run(0), run(1)
        )
        states = await world.states(parcel)
        for (verdict, _), state in zip(verdicts, states, strict=True):
            assert verdict in ("cancelled", "asked", "final")
            assert (state == "cancelled") == (verdict == "cancelled") or verdict == "asked"
        for slice in await w.holds():
            await w.report(success(slice))
