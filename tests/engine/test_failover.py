"""Failover: a standby takes over, perhaps without the last commits."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
from msgspec import json

from bench.kit.postgres import Postgres
from horae import App, Context
from horae.client.client import Client
from horae.client.transport.embedded import EmbeddedTransport
from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.errors import SessionEnded, StoreUnavailable
from horae.model.fleet.protocol import Answer, Exchange, Grant, Register, Registered
from horae.server.app import Application
from horae.store.open import Connections
from horae.worker.gateway_transport import GatewayTransport
from horae.worker.settings import WorkerSettings
from horae.worker.worker import WorkerRuntime
from tests.replication import Pair, replicated
from tests.store_contract.test_driver_pooler import pgbouncer, pooling  # noqa: F401
from tests.store_contract.test_driver_silence import Hole
from tests.store_contract.world import World
from tests.waiting import eventually

KEY = "horae-testing-" + "0" * 32


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


class Running:
    """A server with a worker in the same process, whose functions count their starts and wait for `goes_on`."""

    def __init__(self, node: ServerNode) -> None:
        self.node, self.app = node, App()
        self.began: Counter[str] = Counter()
        self.tokens: list[int] = []
        self.stopped: list[str] = []
        self.goes_on, self.released = asyncio.Event(), threading.Event()
        self.client = Client(key=KEY, transport=EmbeddedTransport(Application(node)))
        self.worker = WorkerRuntime(node.env, WorkerSettings(name="w"), GatewayTransport(node), self.app)
        self.app.job("patient")(self.patient)
        self.app.job("once", delivery="at-most-once", isolation="thread")(self.once)

    async def patient(self, ctx: Context) -> int:
        self.began["patient"] += 1
        self.tokens.append(ctx.token)
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.stopped.append("patient")
            raise
        return ctx.token

    def once(self, ctx: Context) -> int:
        self.began["once"] += 1
        self.released.wait(60)
        return ctx.token

    async def begin(self, *names: str) -> list[str]:
        """Submit executions, and wait until all of them run."""
        ids = [(await self.client.submit(name, {})).id for name in names]
        await eventually(lambda: self.began.total() == len(ids))
        return ids

    def release(self) -> None:
        self.goes_on.set()
        self.released.set()


@pytest.fixture
async def busy(node: ServerNode) -> AsyncIterator[Running]:
    await node.start()
    await node.tenancy.keys.ensure_admin_key(KEY)
    made = Running(node)
    for document in made.app.definitions():
        await made.client.jobs.apply(document)
    running = asyncio.ensure_future(made.worker.run())
    yield made
    made.release()
    made.worker.abort()
    await running


async def test_running_executions_go_on_after_a_failover(busy: Running, pair: Pair):
    """Also a function in a thread, which could not be stopped, and one that may begin only once."""
    ids = await busy.begin("patient", "once")
    session = busy.worker.session
    await pair.catch_up()

    pair.fail_over()
    await eventually(lambda: session.era == 1 and not session.is_detached)
    busy.release()
    ended = [await busy.client.executions.wait(id, timeout=60) for id in ids]

    assert [execution.status for execution in ended] == ["success", "success"]
    assert (busy.began, busy.worker.session) == (Counter(patient=1, once=1), session)
    later = await busy.client.executions.wait((await busy.client.submit("patient", {})).id, timeout=60)
    assert later.result >> 32 == (await busy.node.store.identity()).epoch > ended[0].result >> 32


async def test_an_execution_with_a_lost_claim_is_stopped_and_runs_again_with_a_greater_token(busy: Running, pair: Pair):
    world = World(busy.node.store.driver, busy.node.env)
    await busy.client.jobs.pause("patient")
    (submitted,) = [(await busy.client.submit("patient", {})).id]
    await pair.cut_off()
    await busy.client.jobs.resume("patient")
    await eventually(lambda: busy.began["patient"] == 1)

    pair.fail_over()
    await eventually(lambda: busy.stopped == ["patient"])
    await busy.client.jobs.resume("patient")
    await eventually(lambda: busy.began["patient"] == 2)
    busy.release()

    ended = await busy.client.executions.wait(submitted, timeout=60)
    assert (ended.status, ended.result) == ("success", busy.tokens[1])
    assert busy.tokens[0] < busy.tokens[1]
    await world.check()
