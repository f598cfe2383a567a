"""Replays: dead letters run again at a pace, whichever server is there, once each."""

import pytest

from horae.env import SECOND
from horae.errors import BadInput, Conflict, NotFound, OverQuota, StoreUnavailable
from horae.features.dead_letters.engine.dead_letters import DeadLetters
from horae.features.dead_letters.engine.replays import Replayer, Replays
from horae.features.dead_letters.model import LEASE
from tests.engine.objects import executions_of
from tests.engine.test_dead_letters import Submits, fail
from tests.store_contract.world import NAMESPACE, World, failed


class Stage:
    """Letters, replays of them, and two servers that work these."""

    def __init__(self, world: World, submits: Submits) -> None:
        self.world, self.submits = world, submits
        self.letters = DeadLetters(world.env, world.store, submits, executions_of(world.store))
        self.replays = Replays(world.env, world.store, self.letters)
        self.servers = [Replayer(world.env, world.store, self.letters) for _ in range(2)]

    async def work(self) -> int:
        """Let both servers do what is due; how many letters were retried."""
        before = sum(server.retried for server in self.servers)
        for _ in range(3):
            for server in self.servers:
                await server.step()
        return sum(server.retried for server in self.servers) - before


@pytest.fixture
async def stage(world: World):
    submits = Submits(world)
    yield Stage(world, submits)
    await submits.submitter.close()


async def test_matching_letters_are_run_again_at_the_given_pace(stage: Stage, world: World):
    job, other = await world.job("a"), await world.job("b")
    await fail(world, job, 25)
    await fail(world, other, 2)
    made = await stage.replays.create(NAMESPACE, job="a", rate="10/1s", params={"edited": True}, caller="me")
    assert (made.state, made.total, made.filter.job, made.rate) == ("running", 25, "a", "10/1s")

    counts = []
    for _ in range(4):
        counts.append(await stage.work())
        assert await stage.work() == 0
        world.clock.advance(SECOND)
    assert counts == [10, 10, 5, 0]
    done = await stage.replays.get(NAMESPACE, made.replay_id)
    assert (done.state, done.matched, done.retried, done.skipped) == ("done", 25, 25, 0)
    assert done.completed_at is not None
    assert len((await stage.letters.list(NAMESPACE)).items) == 2
    page = await executions_of(world.store).list(NAMESPACE, job="a", status="queued", limit=50)
    assert {bytes(one.params)[-14:] for one in page.items} == {b'"edited":true}'}
    assert len({one.retry_of for one in page.items}) == 25


async def test_a_replay_does_not_repeat_a_failed_rerun(stage: Stage, world: World):
    job = await world.job("a")
    await fail(world, job, 3)
    made = await stage.replays.create(NAMESPACE, rate="1/1s")
    assert await stage.work() == 1
    worker = await world.worker()
    (again,) = await worker.claim(1)
    await worker.report(failed(again), policies=job.policy)
    for _ in range(5):
        world.clock.advance(SECOND)
        await stage.work()

    done = await stage.replays.get(NAMESPACE, made.replay_id)
    assert (done.state, done.retried) == ("done", 3)
    assert len((await stage.letters.list(NAMESPACE)).items) == 1


async def test_a_server_that_dies_loses_and_doubles_nothing(stage: Stage, world: World):
    await fail(world, await world.job("a"), 4)
    made = await stage.replays.create(NAMESPACE)
    stage.submits.breaks = True
    with pytest.raises(StoreUnavailable):
        await stage.servers[0].step()
    stage.submits.breaks = False
    assert await stage.work() == 0, "it is the other's for a while"
    world.clock.advance(LEASE)
    await stage.work()

    assert (await stage.replays.get(NAMESPACE, made.replay_id)).state == "done"
    page = await executions_of(world.store).list(NAMESPACE, status="queued")
    assert len(page.items) == 4
    assert (await stage.letters.list(NAMESPACE)).items == []


async def test_a_temporarily_refused_rerun_is_repeated(stage: Stage, world: World):
    await fail(world, await world.job("a"), 2)
    made = await stage.replays.create(NAMESPACE)
    stage.submits.refuses = OverQuota("Too many are queued.")
    assert await stage.work() == 0
    assert "Too many" in (await stage.replays.get(NAMESPACE, made.replay_id)).note
    stage.submits.refuses = None
    world.clock.advance(5 * SECOND)
    assert await stage.work() == 2
    assert (await stage.replays.get(NAMESPACE, made.replay_id)).note in (None, "")


async def test_it_is_paused_resumed_and_cancelled(stage: Stage, world: World):
    await fail(world, await world.job("a"), 9)
    made = await stage.replays.create(NAMESPACE, rate="3/3s")
    await stage.work()
    assert (await stage.replays.pause(NAMESPACE, made.replay_id)).state == "paused"
    world.clock.advance(60 * SECOND)
    assert await stage.work() == 0
    await stage.replays.resume(NAMESPACE, made.replay_id)
    assert await stage.work() == 1
    cancelled = await stage.replays.cancel(NAMESPACE, made.replay_id)
    assert (cancelled.state, cancelled.retried) == ("cancelled", 2)
    world.clock.advance(60 * SECOND)
    assert await stage.work() == 0
    with pytest.raises(Conflict):
        await stage.replays.resume(NAMESPACE, made.replay_id)
    page = await stage.replays.list(NAMESPACE, state="cancelled")
    assert [one.replay_id for one in page.items] == [made.replay_id]


async def test_letters_that_cannot_run_are_skipped_with_the_reason(stage: Stage, world: World):
    job = await world.job("a")
    await fail(world, job, 2)
    await world.do("UPDATE jobs SET state = 'deleted' WHERE id = $1", job.id)
    made = await stage.replays.create(NAMESPACE)
    await stage.work()

    done = await stage.replays.get(NAMESPACE, made.replay_id)
    assert (done.state, done.retried, done.skipped) == ("done", 0, 2)
    assert "a" in done.note
    with pytest.raises(NotFound):
        await stage.replays.get(NAMESPACE, world.env.new_id())


@pytest.mark.parametrize("rate", ["", "10", "0/1s", "10/0s", "ten/1s", "10/soon"])
async def test_a_rate_that_says_nothing_is_refused(stage: Stage, rate: str):
    with pytest.raises(BadInput) as refused:
        await stage.replays.create(NAMESPACE, rate=rate)
    assert refused.value.fields["field"] == "rate"
