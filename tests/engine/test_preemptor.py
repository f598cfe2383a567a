"""The preemptor finds waiting executions, asks less urgent ones to stop, and wakes both sides at once."""

import pytest

from horae.engine.admission.placement.preemptor import INTERVAL, SHORTEST, Preemptor
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.model.admission.placement.preempt import is_in_front
from horae.model.fleet.protocol import PROTOCOL, Register
from tests.store_contract.world import NAMESPACE, Worker, World, released


class Told:
    """Return the hints that were sent."""

    def __init__(self, hints: Hints) -> None:
        self.sessions, self.lanes = [], {}
        hints.listen(self)

    def __call__(self, hint: Hint) -> None:
        self.sessions += hint.sessions
        self.lanes |= hint.lanes


@pytest.fixture
def hints(world: World) -> Hints:
    return Hints(world.env, world.store, world.env.new_id())


@pytest.fixture
def preemptor(world: World, hints: Hints) -> Preemptor:
    return Preemptor(world.env, world.store, LocalDirectory(world.env, world.store, hints), hints)


async def learn(preemptor: Preemptor, world: World) -> None:
    """Reload lanes and queues, and advance time."""
    await preemptor._directory.load()
    await preemptor._directory.step()
    world.clock.advance(1_000_000)


async def test_preemption_wakes_the_session_and_the_lane(world: World, hints, preemptor):
    low = await world.job("low", preemptible=True, priority=1)
    await world.parcel(low)
    w = await world.worker(concurrency=1)
    (slice,) = await w.claim(1)
    high = await world.job("high", preempts=True, priority=5)
    waits = await world.parcel(high)
    await learn(preemptor, world)
    told = Told(hints)

    assert await preemptor.step() == INTERVAL
    assert told.sessions == [w.session]
    assert is_in_front(told.lanes[high.lane])
    assert preemptor.requested == 1
    assert [row[3] for row in (await world.store.requests_of([w.session]))[w.session]] == ["preempt"]

    reply = await w.report(released(slice), free=1)
    assert [granted.parcel for granted in reply.granted] == [waits]


async def test_steps_have_a_minimum_interval(world: World, preemptor):
    await learn(preemptor, world)

    assert await preemptor.step() == INTERVAL
    assert await preemptor.step() == pytest.approx(SHORTEST)


async def test_the_store_is_not_read_while_nothing_is_queued(world: World, preemptor):
    await learn(preemptor, world)
    await preemptor.step()

    assert "preempting_jobs" not in world.driver.statements


async def test_resources_decide_which_execution_is_preempted(world: World, preemptor):
    small = await world.job("small", preemptible=True, priority=0)
    await world.parcel(small, 3)
    session = await world.store.register(NAMESPACE, Register(protocol=PROTOCOL, worker="w", concurrency=3))
    w = Worker(world, session.id)
    await w.claim(3)
    large = await world.job("large", preempts=True, priority=9, slots=2)
    await world.parcel(large)
    await learn(preemptor, world)

    await preemptor.step()
    assert len((await world.store.requests_of([w.session]))[w.session]) == 2


async def test_executions_of_a_preempting_queue_preempt(world: World, preemptor):
    low = await world.job("low", preemptible=True, priority=0)
    await world.parcel(low)
    w = await world.worker(concurrency=1)
    await w.claim(1)
    plain = await world.job("plain", queue="hasty", priority=9)
    await world.parcel(plain)
    await world.do("UPDATE sessions SET queues = $1", '["default", "hasty"]')
    await learn(preemptor, world)
    await preemptor.step()
    assert (await world.store.requests_of([w.session]))[w.session] == []

    await world.do("UPDATE queues SET spec = $1 WHERE name = 'hasty'", '{"preempts":true}')
    await learn(preemptor, world)
    await preemptor.step()
    await world.do("UPDATE queues SET spec = '{}' WHERE name = 'hasty'")
    assert [row[3] for row in (await world.store.requests_of([w.session]))[w.session]] == ["preempt"]
