"""The parking lot: every exchange that waits is answered in time, whatever stands in its lanes."""

import asyncio

import pytest
from msgspec import json

from horae.engine.hints import Hint
from horae.engine.node import Node
from horae.env import SECOND, virtual_env
from horae.model.protocol import Answer, Exchange, Register
from horae.store.contract import Store
from horae.store.sqlite.memory import MemoryDriver
from tests.store_contract.world import World

HEARTBEAT = 5 * SECOND


@pytest.fixture
async def node():
    env = virtual_env()
    driver = MemoryDriver(env)
    await driver.migrate()
    node = Node(env, Store(driver, env))
    await node.start({"gateway"})
    yield node
    await node.stop()


async def pass_time(node, seconds):
    """Let everybody do what is due, a hundredth of a second at a time."""
    for _ in range(round(seconds * 100)):
        node.env.clock.advance(SECOND // 100)
        for _ in range(10):
            await asyncio.sleep(0)


async def register(node):
    presence = Register(protocol=1, worker="w", concurrency=1)
    return (await node.gateway.register(1, presence)).session_id


def send(node, session, **up):
    return asyncio.ensure_future(node.gateway.exchange(1, session, Exchange(**up)))


async def test_a_busy_worker_beside_a_full_queue_has_its_heartbeat_answered(node):
    world = World(node.store.driver, node.env)
    await world.submit(await world.job(), 2)
    await node.directory.step()
    session = await register(node)
    granted = json.decode(await send(node, session, channel=0, n=1, free=1), type=Answer)
    assert sum(s.hi - s.lo for s in granted.slices) == 1
    await pass_time(node, 1)

    poll = send(node, session, channel=0, n=2, wait=HEARTBEAT)
    await pass_time(node, 5.1)

    assert poll.done()


async def test_sessions_that_fell_silent_are_forgotten_and_known_again(node):
    silent = await register(node)
    node.hints.tell_here(Hint(sessions=[silent]))
    node.env.clock.advance(3600 * SECOND)

    other = await register(node)
    assert set(node.gateway._known) == {other}
    assert not node.gateway._asked

    assert json.decode(await send(node, silent, channel=0, n=1), type=Answer).slices == []
    assert set(node.gateway._known) == {other, silent}
