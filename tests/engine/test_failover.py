"""Failover: a standby takes over, perhaps without the last commits."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
from msgspec import json

from bench.kit.postgres import Postgres
from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.errors import SessionEnded, StoreUnavailable
from horae.model.fleet.protocol import Answer, Exchange, Grant, Register, Registered
from horae.store.open import Connections
from tests.replication import Pair, replicated
from tests.store_contract.test_driver_pooler import pgbouncer, pooling  # noqa: F401
from tests.store_contract.test_driver_silence import Hole
from tests.store_contract.world import World
from tests.waiting import eventually


@pytest.fixture
async def pair(own_postgres: Postgres) -> AsyncIterator[Pair]:
    own_postgres.create_database("horae")
    with replicated(own_postgres) as pair:
        yield pair


@pytest.fixture
async def node(pair: Pair) -> AsyncIterator[ServerNode]:
    """Return a server with stopped services."""
    node = await ServerNode.open(system_env(), pair.url("horae", "?target_session_attrs=read-write"))
    await node.prepare()
    yield node
    await node.stop()


async def register(node: ServerNode) -> Registered:
    return await node.gateway.register(1, Register(protocol=1, worker="w"))


async def claim(node: ServerNode, session: UUID, n: int = 1) -> list[Grant]:
    await node.base.directory.step()
    return json.decode(await node.gateway.exchange(1, session, Exchange(channel=0, n=n, free=1)), type=Answer).slices


async def reachable(node: ServerNode) -> bool:
    try:
        await node.store.driver.ping()
    except StoreUnavailable:
        return False
    return True


async def test_an_execution_with_a_lost_start_gets_a_greater_token(node: ServerNode, pair: Pair):
    world = World(node.store.driver, node.env)
    await world.submit(await world.job(), 1)
    before = await register(node)
    await pair.cut_off()
    (lost,) = await claim(node, before.session_id)
    pair.fail_over()
    await eventually(lambda: reachable(node))

    after = await register(node)
    (again,) = await claim(node, after.session_id)

    assert (again.parcel, again.lo, again.attempt) == (lost.parcel, lost.lo, lost.attempt)
    assert again.token > lost.token
    assert after.epoch == again.token >> 32 == (await node.store.identity()).epoch
    (repeated,) = await claim(node, after.session_id)
    assert repeated.token == again.token


async def test_a_failover_ends_earlier_sessions_only(node: ServerNode, pair: Pair):
    before = await register(node)
    await pair.catch_up()
    pair.fail_over()
    await eventually(lambda: reachable(node))
    after = await register(node)

    await node.base.epochs.step()

    assert node.epoch == after.epoch > before.epoch
    assert await claim(node, after.session_id) == []
    with pytest.raises(SessionEnded):
        await claim(node, before.session_id)


async def test_a_failover_wakes_the_watch_of_epochs(node: ServerNode, pair: Pair):
    await pair.catch_up()
    pair.fail_over()
    await eventually(lambda: reachable(node))

    async with asyncio.timeout(30):
        await node.base.epochs.alarm.wait(node.env.clock, 3600)


async def test_two_standbys_of_the_same_timeline_issue_different_tokens(own_postgres: Postgres):
    own_postgres.create_database("horae")
    with replicated(own_postgres) as first, replicated(own_postgres) as second:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (own_postgres, first.standby, second.standby))
        node = await ServerNode.open(system_env(), f"postgresql://postgres@{hosts}/horae")
        try:
            await node.prepare()
            world = World(node.store.driver, node.env)
            await world.submit(await world.job(), 1)
            await first.catch_up()
            await second.catch_up()
            first.fail_over()
            await eventually(lambda: reachable(node))
            before = await register(node)
            (lost,) = await claim(node, before.session_id)
            first.standby.stop("immediate")
            second.promote()
            await eventually(lambda: reachable(node))

            after = await register(node)
            (again,) = await claim(node, after.session_id)

            assert (again.parcel, again.attempt) == (lost.parcel, lost.attempt)
            assert again.token > lost.token
        finally:
            await node.stop()


async def test_pooled_connections_across_a_failover_repeat_no_token(
    pair: Pair,
    pgbouncer: str,  # noqa: F811
    tmp_path: Path,
):
    switch = Hole(pair.primary.port)
    behind = f"postgresql://postgres@127.0.0.1:{await switch.start()}/horae"
    async with pooling(pgbouncer, tmp_path, behind, "transaction") as url:
        node = await ServerNode.open(system_env(), url, connections=Connections(direct=pair.url("horae")))
        try:
            await node.prepare()
            world = World(node.store.driver, node.env)
            await world.submit(await world.job(), 1)
            before = await register(node)
            await pair.cut_off()
            (lost,) = await claim(node, before.session_id)
            pair.fail_over()
            switch.port = pair.standby.port
            await eventually(lambda: "closing because" in (tmp_path / "pgbouncer.log").read_text())

            await eventually(lambda: reachable(node))
            with pytest.raises(SessionEnded):
                await claim(node, before.session_id)
            after = await register(node)
            (again,) = await claim(node, after.session_id)

            assert again.token > lost.token
        finally:
            await node.stop()
            await switch.stop()
