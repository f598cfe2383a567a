"""Durable executions that move to another worker after every stored step, on each store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from horae import App, Client, EmbeddedTransport
from horae.engine.server_node import ServerNode
from horae.env import SECOND, system_env
from horae.model.fleet.protocol import Await, Awaited, Remember, Remembered
from horae.model.tenancy.principal import DEFAULT_NAMESPACE
from horae.server.app import Application
from horae.worker.code import durable
from horae.worker.gateway_transport import GatewayTransport
from horae.worker.settings import WorkerSettings
from horae.worker.worker import WorkerRuntime
from tests.waiting import eventually

KEY = "k" * 40
REMEMBERED = 6  # steps that an execution stores, one after another
DONE: dict[str, list[str]] = {}
app = App()


def do(id: str, what: str) -> str:
    DONE.setdefault(id, []).append(what)
    return what


@app.job(durable=True)
async def journey(ctx, id: str) -> list[object]:
    first = await ctx.step("a", do, id, "a")
    told = await ctx.wait_for("go")
    second = await ctx.step("a", do, id, "b")
    await ctx.sleep("50ms")
    await ctx.checkpoint([first, second])
    return [told, *await ctx.restored(), await ctx.step("c", do, id, "c")]


class Cut:
    """A connection that fails after a number of stored steps: the steps are stored, but the answer is lost."""

    def __init__(self, node: ServerNode, after: int) -> None:
        self._inner, self._left = GatewayTransport(node), after
        self.is_cut = asyncio.Event()

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    async def remember(self, session, body: Remember) -> Remembered:
        return await self._count(await self._inner.remember(session, body))

    async def wait_for_signal(self, session, body: Await) -> Awaited:
        answer = await self._inner.wait_for_signal(session, body)
        return await self._count(answer) if answer.result else answer

    async def _count(self, answer):
        self._left -= 1
        if self._left == 0:
            self.is_cut.set()
        return answer if self._left > 0 else await asyncio.Event().wait()


@asynccontextmanager
async def served(url: str) -> AsyncIterator[tuple[ServerNode, Client]]:
    node = await ServerNode.open(system_env(), url)
    await node.start()
    await node.tenancy.keys.ensure_admin_key(KEY)
    client = Client(key=KEY, transport=EmbeddedTransport(Application(node)))
    for document in app.definitions():
        await client.jobs.apply(document)
    try:
        yield node, client
    finally:
        await client.close()
        await node.stop()


@asynccontextmanager
async def working(node: ServerNode, transport) -> AsyncIterator[WorkerRuntime]:
    worker = WorkerRuntime(node.env, WorkerSettings(name="w"), transport, app)
    runs = asyncio.ensure_future(worker.run())
    await eventually(lambda: worker.session is not None)
    try:
        yield worker
    finally:
        worker.abort()
        await runs


@pytest.mark.parametrize("store", ["sqlite://", "postgres_url"])
async def test_an_execution_interrupted_after_any_step_does_every_step_once(store, request, monkeypatch):
    monkeypatch.setattr(durable, "SHORT", SECOND // 100)  # even a short sleep suspends the execution
    url = request.getfixturevalue(store) if store == "postgres_url" else store
    DONE.clear()
    async with served(url) as (node, client):
        for after in range(1, REMEMBERED + 1):
            one = await client.submit("journey", {"id": str(after)})
            await client.executions.signal(one.id, "go", after)
            cut = Cut(node, after)
            async with working(node, cut) as worker:
                session = worker.session.id
                await asyncio.wait_for(cut.is_cut.wait(), 30)
            await node.gateway.close(DEFAULT_NAMESPACE, session)
            await node.fleet.rescuer.step()
            async with working(node, GatewayTransport(node)):
                done = await client.executions.wait(one.id, timeout=30)
            assert (done.status, done.result) == ("success", [after, "a", "b", "c"])
            assert DONE[str(after)] == ["a", "b", "c"]
