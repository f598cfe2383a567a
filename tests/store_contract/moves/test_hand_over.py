"""Hand over: submitted executions are granted to waiting exchanges by the statement that accepts them."""

import pytest

from horae.model.executions.submission import Idempotency, Submission
from horae.store.driver import one
from horae.store.executions.entering.submit import JobMoved
from horae.store.script import Statement
from tests.store_contract.world import World, spans

EDIT = Statement("edit", "UPDATE jobs SET version = version + 1 WHERE id = $1")


async def test_a_submission_runs_at_once_if_an_exchange_waits(world: World):
    job = await world.job()
    w = await world.worker()

    done = await world.hand_over(job, 3, w.parked(5, frozenset({job.lane})))

    (running,) = done.running
    assert (running.session, running.channel, running.n, running.attempt) == (w.session, 0, 1, 1)
    assert await world.states(running.parcel) == ["running"] * 3
    assert (await world.on("queued"), done.lanes) == ([], {})
    assert [slice.parcel for slice in await world.store.stamped_slices(w.session, 0, 1)] == [running.parcel]


async def test_executions_beyond_the_waiting_slots_stay_queued(world: World):
    job = await world.job()
    first, second = await world.worker("a"), await world.worker("b")
    lanes = frozenset({job.lane})

    done = await world.hand_over(job, 10, first.parked(2, lanes), second.parked(3, lanes))

    assert sorted(slice.hi - slice.lo for slice in done.running) == [2, 3]
    assert spans(await world.on("queued")) == [(5, 10)]
    assert done.lanes.keys() == {job.lane}


async def test_a_number_taken_meanwhile_leaves_all_executions_queued(world: World):
    job = await world.job()
    w = await world.worker()
    waiting = w.parked(5, frozenset({job.lane}))
    await world.store.answer_empty([(w.session, 0, 1)])

    done = await world.hand_over(job, 2, waiting)

    assert (done.running, done.lanes.keys()) == ([], {job.lane})
    assert spans(await world.on("queued")) == [(0, 2)]


async def test_an_answer_on_another_channel_does_not_matter(world: World):
    job = await world.job()
    w = await world.worker()
    waiting = w.parked(5, frozenset({job.lane}), channel=1)
    await world.store.answer_empty([(w.session, 0, 1)])

    (running,) = (await world.hand_over(job, 1, waiting)).running

    assert (running.channel, running.n) == (1, 1)
    assert await world.store.answer_empty([(w.session, 0, 2), (w.session, 1, 1)]) == {
        (w.session, 0): ("empty", False), (w.session, 1): ("taken", False),
    }  # fmt: skip


@pytest.mark.parametrize("state", ["lost", "draining"])
async def test_a_session_that_leaves_gets_nothing(world: World, state):
    job = await world.job()
    w = await world.worker()
    await (w.lose() if state == "lost" else world.store.ask_drain(w.session))

    done = await world.hand_over(job, 1, w.parked(5, frozenset({job.lane})))

    assert done.running == []
    assert spans(await world.on("queued")) == [(0, 1)]


async def test_only_sessions_of_a_lane_get_its_executions(world: World):
    job = await world.job()
    w = await world.worker()

    assert (await world.hand_over(job, 1, w.parked(5, frozenset({job.lane + 1})))).running == []


async def test_paused_or_delayed_executions_are_not_handed_over(world: World):
    job = await world.job()
    waiting = (await world.worker()).parked(5, frozenset({job.lane}))

    assert (await world.hand_over(job, 1, waiting, paused=frozenset({job.id}))).running == []
    done = await world.hand_over(job, 1, waiting, due_at=world.now() + 60_000_000)

    assert (done.running, done.wake_at) == ([], world.now() + 60_000_000)


async def test_a_job_edited_meanwhile_is_reported(world: World):
    job = await world.job()
    waiting = (await world.worker()).parked(5, frozenset({job.lane}))
    wanted = world.wanted(job, 1)
    await world.store.write(one(EDIT, job.id))

    with pytest.raises(JobMoved):
        await world.store.submit([Submission(executions=wanted)], [waiting])
    assert await world.on("queued") == await world.on("running") == []


async def test_requests_with_keys_are_not_handed_over_directly(world: World):
    job = await world.job()
    waiting = (await world.worker()).parked(5, frozenset({job.lane}))
    key = Idempotency(1, "POST /executions", "k", b"1", world.now() + 60_000_000)
    submission = Submission(executions=world.wanted(job, 1), idempotency=key)

    first = await world.store.submit([submission], [waiting])
    second = await world.store.submit([submission], [waiting])

    assert first.running == second.running == []
    assert spans(await world.on("queued")) == [(0, 1)]
    assert second.parcels == []
