"""Rescue: the slices of an ended session continue elsewhere, once, and are charged for the right cause."""

import asyncio

import pytest

from horae.model.definitions.retry import LOST, Budgets, RetryPolicy
from horae.model.fleet.suspects import tries
from horae.store.executions.reads import housekeeping
from tests.store_contract.world import World, began, success


async def lost(world: World, n: int = 4, **spec):
    """Create a lost worker that held one slice of n items."""
    parcel = await world.parcel(await world.job(**spec), n)
    w = await world.worker()
    (slice,) = await w.claim(n)
    await w.lose()
    return parcel, w, slice


async def test_a_silent_session_is_lost(world: World):
    w = await world.worker()
    seen = world.now()
    world.clock.advance(15_000_000)

    assert await world.store.mark_lost(w.session, seen)
    session = await world.store.session(w.session)
    assert (session.state, session.ended_at) == ("lost", world.now())


async def test_a_session_that_reported_meanwhile_is_not_lost(world: World):
    w = await world.worker()
    seen = world.now()
    world.clock.advance(15_000_000)
    await world.store.answer_empty([(w.session, 0, 1)])

    assert not await world.store.mark_lost(w.session, seen)
    assert (await world.store.session(w.session)).state == "live"


async def test_a_session_ends_once(world: World):
    w, other = await world.worker(), await world.worker("other")
    assert await world.store.mark_lost(w.session, world.now())
    world.clock.advance(5)
    assert not await world.store.mark_lost(w.session, world.now() - 5)
    assert not await world.store.close_session(w.session)
    assert await world.store.close_session(other.session)
    assert not await world.store.mark_lost(other.session, world.now() - 5)
    assert not await world.store.mark_lost(world.env.new_id(), world.now())

    assert [(await world.store.session(s.session)).state for s in (w, other)] == ["lost", "closed"]


async def test_a_live_session_is_not_rescued(world: World):
    parcel = await world.parcel(await world.job(), 2)
    w = await world.worker()
    await w.claim(2)
    assert await world.store.rescue(w.session, 10) is None
    await world.store.ask_drain(w.session)
    assert await world.store.rescue(w.session, 10) is None
    assert await world.store.rescue(world.env.new_id(), 10) is None

    assert await world.states(parcel) == ["running"] * 2


async def test_lost_items_are_queued_with_their_rank_and_charged(world: World):
    parcel, w, slice = await lost(world)
    effects = await world.store.rescue(w.session, 10)

    (queued,) = await world.on("queued", parcel)
    assert (queued.lo, queued.hi, queued.rank, queued.lane) == (0, 4, slice.rank, slice.lane)
    assert (queued.attempt, queued.failures, queued.losses) == (1, 0, 1)
    assert effects.requeued == {slice.lane: slice.rank}
    rows = await world.rows("SELECT attempt, lo, hi, outcome, worker FROM attempts")
    assert rows == [(1, 0, 4, "lost", "w")]


async def test_the_job_sets_the_number_of_losses_before_quarantine(world: World):
    parcel, w, _ = await lost(world, 1, retry=RetryPolicy(budgets=Budgets(lost=0)))
    await world.store.rescue(w.session, 10)

    assert await world.history(parcel) == [(0, 1, "failed", "poison")]
    assert await world.rows("SELECT outcome, kind FROM attempts") == [("lost", "lost")]


async def test_an_uncharged_rescue_leaves_no_trace(world: World):
    parcel = await world.parcel(await world.job(), 4)
    w = await world.worker()
    await w.claim(4)
    await world.store.close_session(w.session)
    await world.store.rescue(w.session, 10, charge=False)

    (queued,) = await world.on("queued", parcel)
    assert (queued.attempt, queued.losses) == (1, 0)
    assert await world.rows("SELECT attempt FROM attempts") == []


async def test_an_attempt_that_had_begun_is_recorded_when_its_worker_leaves(world: World):
    parcel = await world.parcel(await world.job(), 2)
    w = await world.worker()
    (slice,) = await w.claim(2)
    await w.exchange(started=[began(slice, world.now(), 0, 1)])
    await world.store.close_session(w.session)
    await world.store.rescue(w.session, 10, charge=False)

    assert await world.states(parcel) == ["queued", "queued"]
    assert await world.rows("SELECT lo, hi, outcome FROM attempts") == [(0, 1, "released")]


async def test_a_lost_attempt_at_most_once_is_final(world: World):
    parcel, w, _ = await lost(world, delivery="at-most-once")
    await world.store.rescue(w.session, 10)

    assert await world.history(parcel) == [(0, 4, "failed", "delivery")]


async def test_a_lost_at_most_once_execution_is_final_even_without_a_charge(world: World):
    """The worker of a closed session, or of one from an old epoch, may have begun it."""
    parcel = await world.parcel(await world.job(delivery="at-most-once"), 2)
    w = await world.worker()
    await w.claim(2)
    await world.store.close_session(w.session)
    await world.store.rescue(w.session, 10, charge=False)

    assert await world.history(parcel) == [(0, 2, "failed", "delivery")]


async def test_losses_end_in_quarantine(world: World):
    parcel = await world.parcel(await world.job())
    for loss in range(1, LOST + 2):
        w = await world.worker(f"w{loss}")
        (slice,) = await w.claim()
        assert (slice.attempt, slice.losses) == (loss, loss - 1)
        await w.lose()
        await world.store.rescue(w.session, 10)

    assert await world.history(parcel) == [(0, 1, "failed", "poison")]
    assert len(await world.rows("SELECT attempt FROM attempts")) == LOST + 1


async def test_a_loss_among_others_is_not_evidence_until_it_is_the_only_suspect(world: World):
    """It is retried more often than an execution that was alone on its worker, and the executions lost with it are not
    quarantined.
    """
    poison, other = await world.parcel(await world.job()), await world.job("other")
    for loss in range(1, tries(3) + 2):
        assert await world.history() == []
        world.clock.advance(1)
        await world.parcel(other)
        w = await world.worker(f"w{loss}", concurrency=3)
        held = await w.claim(3)
        assert len(held) > 1
        assert poison in {slice.parcel for slice in held}
        await w.lose()
        await world.store.rescue(w.session, 10)

    assert await world.history() == await world.history(poison) == [(0, 1, "failed", "poison")]


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
async def test_the_last_batch_of_a_rescue_is_not_taken_for_the_whole_session(world: World, limit: int):
    parcels = [await world.parcel(await world.job(f"j{i}")) for i in range(4)]
    w = await world.worker()
    await world.do("UPDATE queued SET losses = 2, alone = 2")
    await w.claim(9)
    await w.lose()
    for _ in parcels:
        await world.store.rescue(w.session, limit)

    assert await world.on("running") == []
    assert await world.history() == []


async def test_a_rescue_goes_in_batches(world: World):
    job = await world.job()
    w = await world.worker()
    for _ in range(5):
        await world.parcel(job)
    assert len(await w.claim(5)) == 5
    await w.lose()

    moved = []
    while effects := await world.store.rescue(w.session, 2):
        if not effects.moved:
            break
        moved.append(len(effects.moved))
    assert moved == [2, 3]


async def test_three_rescuers_at_once_take_each_slice_back_once(world: World):
    job = await world.job()
    w = await world.worker()
    parcels = [await world.parcel(job, 3) for _ in range(12)]
    await w.claim(36)
    await w.lose()

    async def rescuer():
        taken = []
        while (effects := await world.store.rescue(w.session, 2)).moved:
            taken += [(m.parcel, m.lo, m.hi) for m in effects.moved]
        return taken

    taken = [slice for some in await asyncio.gather(*(rescuer() for _ in range(3))) for slice in some]
    assert sorted(taken) == sorted((parcel, 0, 3) for parcel in parcels)
    assert {s.losses for s in await world.on("queued")} == {1}


async def test_several_watchers_end_a_session_once(world: World):
    w = await world.worker()
    verdicts = await asyncio.gather(*(world.store.mark_lost(w.session, world.now()) for _ in range(5)))

    assert sorted(verdicts) == [False] * 4 + [True]


async def test_a_lost_session_is_watched_until_it_owns_nothing(world: World):
    _, w, _ = await lost(world)
    idle = await world.worker("idle")
    assert {(id, state, owns) for id, state, _, owns in await world.store.watched_sessions()} == {
        (w.session, "lost", True),
        (idle.session, "live", False),
    }
    await world.store.rescue(w.session, 10)

    assert [id for id, *_ in await world.store.watched_sessions()] == [idle.session]


async def test_slices_of_an_unknown_session_are_taken_back(world: World):
    parcel = await world.parcel(await world.job(), 2)
    w = await world.worker()
    await w.claim(2)
    await world.do("DELETE FROM sessions WHERE id = $1", w.session)

    assert await world.store.write(lambda: housekeeping.adopt_orphans(world.now())) == [w.session]
    await world.store.rescue(w.session, 10)
    assert await world.states(parcel) == ["queued"] * 2


async def test_started_and_split_slices_are_all_rescued(world: World):
    parcel = await world.parcel(await world.job(), 6)
    w = await world.worker()
    (slice,) = await w.claim(6)
    await w.exchange(started=[began(slice, world.now(), 2, 4)], outcomes=[success(slice, 0, 1)])
    await w.lose()
    await world.store.rescue(w.session, 10)

    assert await world.states(parcel) == ["success"] + ["queued"] * 5


async def test_executions_that_a_lost_worker_was_asked_to_stop_have_stopped(world: World):
    """The request must not be lost with the worker, nor stay behind and stop a later attempt."""
    parcel, w, _ = await lost(world, 3)
    assert await world.store.cancel(parcel, 1, "unwanted") == ("asked", w.session)
    await world.store.rescue(w.session, 10)

    assert await world.states(parcel) == ["queued", "cancelled", "queued"]
    assert await world.rows("SELECT item FROM requests") == []


async def test_sessions_of_an_old_epoch_end_and_are_charged_nothing(world: World):
    parcel = await world.parcel(await world.job(), 2)
    w = await world.worker()
    await w.claim(2)
    assert await world.store.end_old_epochs(1) == []
    assert await world.store.end_old_epochs(2) == [w.session]
    await world.store.rescue(w.session, 10, charge=False)

    assert (await world.store.session(w.session)).state == "closed"
    (queued,) = await world.on("queued", parcel)
    assert queued.losses == 0


async def test_a_lost_session_of_an_old_epoch_stays_lost(world: World):
    w = await world.worker()
    await w.lose()

    assert await world.store.end_old_epochs(2) == []
    assert (await world.store.session(w.session)).state == "lost"
