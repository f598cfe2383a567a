"""Hand-backs: prefetched executions are returned for more urgent ones, so that there is no priority inversion."""

import asyncio

import pytest
from msgspec import json

from horae.engine.admission.holds import HoldRequest
from horae.engine.fleet.hand_backs import BURST, PAUSE
from horae.engine.server_node import ServerNode
from horae.env import SECOND, virtual_env
from horae.errors import StoreUnavailable
from horae.model.fleet.protocol import Answer, Exchange, Outcome, Register
from horae.store.admission.placement import prefetch
from horae.store.contract import Store
from horae.store.sqlite.memory import MemoryDriver
from horae.worker.pace import AHEAD_SECONDS, DurationEstimates
from horae.worker.session import WorkerSession
from tests.store_contract.world import NAMESPACE, World

STEP = 0.005  # seconds of virtual time
LENGTH = 0.05  # seconds that an execution takes


@pytest.fixture
async def node():
    env = virtual_env()
    driver = MemoryDriver(env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env))
    await node.start({"gateway"})
    yield node
    await node.stop()


class Hand:
    """A simulated worker with the bundled worker's protocol code. Every execution takes the same time."""

    def __init__(self, node, registered, slots):
        self.node, self.session = node, WorkerSession(node.env.clock, registered, slots, DurationEstimates())
        self.calls, self.ends, self.begun, self.count = [], {}, {}, 0

    @property
    def ready(self):
        """The number of prefetched executions that have not begun."""
        return sum(len(backlog) for backlog in self.session.stock.backlogs.values())

    def turn(self):
        now = self.node.env.clock.monotonic()
        for call in [call for call in self.calls if call[1].done()]:
            self.calls.remove(call)
            self.session.answered(call[0], json.decode(call[1].result(), type=Answer), call[2])
        for chunk, (begun, end) in list(self.ends.items()):
            if now >= end:
                chunk.end(begun, now, b"1")
                del self.ends[chunk]
                self._begin(chunk, now)
        while chunk := self.session.take():
            self._begin(chunk, now)
        self.session.tick()
        while exchange := self.session.next_exchange():
            task = asyncio.ensure_future(self.node.gateway.exchange(1, self.session.id, exchange))
            self.calls.append((exchange, task, now))

    def _begin(self, chunk, now):
        begun = chunk.begin(now)
        if begun is None:
            self.session.finish(chunk)
        else:
            self.begun[begun[0].grant.parcel] = now
            self.count += 1
            self.ends[chunk] = begun, now + LENGTH


async def hire(node, count, slots, **how):
    presences = [Register(protocol=1, worker=f"w{i}", concurrency=slots, **how) for i in range(count)]
    return [Hand(node, await node.gateway.register(1, presence), slots) for presence in presences]


async def pass_time(node, hands, until, within=5.0):
    """Advance time until a condition holds; return the time that it took."""
    start = node.env.clock.monotonic()
    while not until():
        took = node.env.clock.monotonic() - start
        assert took < within, "the condition was not met in time"
        node.env.clock.advance(int(STEP * SECOND))
        for _ in range(4):
            for hand in hands:
                hand.turn()
            for _ in range(10):
                await asyncio.sleep(0)
    return node.env.clock.monotonic() - start


async def busy(node, world, workers=3, slots=2, **how):
    """Make a fleet that runs and has prefetched short executions of the lowest priority."""
    low = await world.job("low", priority=0)
    for _ in range(30):
        await world.submit(low, 20)
    hands = await hire(node, workers, slots, **how)
    await node.base.directory.step()
    await pass_time(node, hands, lambda: all(hand.ready >= slots for hand in hands))
    return low, hands


async def submit(node, world, job):
    parcel = await world.parcel(job)
    await node.base.directory.step()
    return parcel


async def test_an_urgent_execution_starts_when_one_running_execution_ends(node):
    world = World(node.store.driver, node.env)
    _, hands = await busy(node, world)
    assert all(hand.ready * LENGTH <= AHEAD_SECONDS * 2 for hand in hands)
    urgent = await world.job("urgent", priority=9)

    for _ in range(5):
        parcel = await submit(node, world, urgent)
        took = await pass_time(node, hands, lambda parcel=parcel: any(parcel in hand.begun for hand in hands))
        assert took <= LENGTH + 6 * STEP


async def test_one_urgent_execution_per_slot_starts_within_that_time(node):
    world = World(node.store.driver, node.env)
    _, hands = await busy(node, world)
    urgent = await world.job("urgent", priority=9)

    parcels = [await world.parcel(urgent) for _ in range(6)]
    await node.base.directory.step()
    took = await pass_time(node, hands, lambda: all(any(parcel in hand.begun for hand in hands) for parcel in parcels))
    assert took <= 2 * LENGTH + 8 * STEP


async def test_a_workers_first_queue_does_not_wait_for_prefetched_work_of_the_next(node):
    world = World(node.store.driver, node.env)
    await world.job("first", queue="critical", priority=4)
    _, hands = await busy(node, world, queues=("critical", "default"), strict=True)
    urgent = await world.job("urgent", queue="critical", priority=0)  # its priority is not higher

    parcel = await submit(node, world, urgent)
    took = await pass_time(node, hands, lambda: any(parcel in hand.begun for hand in hands))
    assert took <= LENGTH + 6 * STEP


async def test_handed_back_executions_keep_their_rank_and_run(node):
    world = World(node.store.driver, node.env)
    low, hands = await busy(node, world, workers=1)
    before = {(s.parcel, s.lo, s.rank) for s in await world.on("running")}
    urgent = await world.job("urgent", priority=9)

    parcel = await submit(node, world, urgent)
    await pass_time(node, hands, lambda: parcel in hands[0].begun)
    back = [s for s in await world.on("queued") if s.attempt == 1] + [
        s for s in await world.on("running") if s.attempt == 2
    ]
    assert back
    assert all((s.failures, s.losses) == (0, 0) for s in back)
    assert {s.rank for s in back} <= {rank for _, _, rank in before}
    assert low.spec.priority == 0


async def test_equally_urgent_executions_cause_no_hand_back(node):
    world = World(node.store.driver, node.env)
    low, hands = await busy(node, world, workers=1)

    await submit(node, world, low)
    until = node.env.clock.monotonic() + 0.5
    await pass_time(node, hands, lambda: node.env.clock.monotonic() > until)
    assert "held_ready" not in node.store.driver.statements


async def exchange(node, session, **up):
    return json.decode(await node.gateway.exchange(1, session, Exchange(**up)), type=Answer)


async def test_nothing_is_prefetched_past_a_more_urgent_execution(node):
    """A worker without an idle slot prefetches nothing while a more urgent execution waits for a slot."""
    world = World(node.store.driver, node.env)
    low, urgent = await world.job("low", priority=0), await world.job("urgent", priority=9, queue="default")
    await world.submit(low, 9)
    await node.base.directory.step()
    session = (await node.gateway.register(1, Register(protocol=1, worker="w"))).session_id
    first = await exchange(node, session, channel=0, n=1, free=1)
    await world.submit(urgent, 1)
    await node.base.directory.step()

    ahead = await exchange(node, session, channel=0, n=2, prefetch={low.id: 5})
    assert ahead.slices == []
    (one,) = first.slices
    done = Outcome(parcel=one.parcel, lo=one.lo, hi=one.hi, attempt=one.attempt, outcome="success")
    both = await exchange(node, session, channel=0, n=3, free=1, prefetch={low.id: 5}, outcomes=[done])
    assert both.slices[0].job == urgent.id
    assert sum(grant.hi - grant.lo for grant in both.slices) == 6


async def test_a_steady_stream_does_not_stop_prefetching(node):
    world = World(node.store.driver, node.env)
    _, hands = await busy(node, world, workers=1)
    urgent = await world.job("urgent", priority=9)

    for _ in range(20):
        parcel = await submit(node, world, urgent)
        await pass_time(node, hands, lambda parcel=parcel: parcel in hands[0].begun)
    assert node.store.driver.statements["held_ready"] <= BURST + 1 + node.env.clock.monotonic() / PAUSE


async def test_prefetched_executions_of_a_held_queue_do_not_begin(node):
    world = World(node.store.driver, node.env)
    _, hands = await busy(node, world)
    ready, before = sum(hand.ready for hand in hands), sum(hand.count for hand in hands)

    await node.admission.holds.open(NAMESPACE, "default", HoldRequest(length="1h", reason="deploy"), "me")
    await node.admission.hold_watch.step()
    await pass_time(node, hands, lambda: not any(hand.ends or hand.ready for hand in hands))

    begun = sum(hand.count for hand in hands) - before
    assert begun <= 1 < len(hands) * 2 <= ready
    left = await world.on("queued")
    assert sum(slice.failures + slice.losses for slice in left) == 0
    await node.admission.holds.release(NAMESPACE, "default", None, "me")
    await node.base.directory.step()
    await pass_time(node, hands, lambda: all(hand.ready for hand in hands))


async def test_requests_that_could_not_be_read_are_sent_with_the_next_answer(node, monkeypatch):
    world = World(node.store.driver, node.env)
    _, (hand,) = await busy(node, world, workers=1)
    await pass_time(node, [], lambda: all(call.done() for _, call, _ in hand.calls), within=10)

    def unreadable(*given):
        raise StoreUnavailable("The store went away.")

    node.fleet.hand_backs.hold(node.base.directory.queues)
    up = Exchange(channel=7, n=1)
    with monkeypatch.context() as patch:
        patch.setattr(prefetch, "held_ready", unreadable)
        with pytest.raises(StoreUnavailable):
            await node.gateway.exchange(NAMESPACE, hand.session.id, up)
    answer = json.decode(await node.gateway.exchange(NAMESPACE, hand.session.id, up), type=Answer)

    assert sum(each.hi - each.lo for each in answer.hand_back) >= hand.ready > 0
    assert await node.fleet.hand_backs.take(hand.session.id) == []


async def test_a_hold_leaves_prefetched_executions_of_other_queues(node):
    world = World(node.store.driver, node.env)
    await world.job("held", queue="nightly")
    _, hands = await busy(node, world)
    await node.base.directory.load()

    await node.admission.holds.open(NAMESPACE, "nightly", HoldRequest(length="1h", reason="deploy"), "me")
    await node.admission.hold_watch.step()

    assert [await node.fleet.hand_backs.take(hand.session.id) for hand in hands] == [[], [], []]
