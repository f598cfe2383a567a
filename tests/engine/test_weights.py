"""Weights of namespaces divide the work of servers, so that a flooding namespace starves no other."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.engine.workflows import workflows
from horae.env import Env
from horae.errors import Busy
from horae.features.statistics.part import StatisticsPart
from horae.model.fleet.submit import Submit
from horae.store.contract import Store
from horae.store.open import open_store_driver
from tests.waiting import eventually


@pytest.fixture
async def node(env: Env) -> AsyncIterator[ServerNode]:
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    node = ServerNode(env, Store(driver, env), EngineSettings(max_pending=8, batch_requests=1))
    await node.prepare()
    yield node
    await node.stop()


async def tenant(node: ServerNode, name: str, weight: float, **job: object) -> int:
    await node.tenancy.namespaces.create({"name": name, "weight": weight})
    id = next(one.id for one in node.base.directory.namespaces.values() if one.name == name)
    await node.definitions.jobs.put(id, {"name": "job", **(job or {"command": "true"})})
    return id


async def test_a_flooding_namespace_leaves_the_others_their_part(node: ServerNode, monkeypatch: pytest.MonkeyPatch):
    heavy, light = await tenant(node, "heavy", 3), await tenant(node, "light", 1)
    go, submit = asyncio.Event(), node.store.submit

    async def slow(*args: object, **more: object) -> object:
        await go.wait()
        return await submit(*args, **more)

    monkeypatch.setattr(node.store, "submit", slow)
    asked: list[asyncio.Task[object]] = []

    async def ask(namespace: int) -> None:
        one = node.submitter.submit(namespace, [Submit(job="job")], origin="submit")
        asked.append(asyncio.create_task(one))
        await asyncio.wait({asked[-1]}, timeout=0)
        await eventually(lambda: asked[-1].done() or node.submitter._pending)

    for _ in range(9):  # one runs, eight wait
        await ask(light)
    await eventually(lambda: len(node.submitter._batcher) == 8)
    with pytest.raises(Busy):
        await node.submitter.submit(light, [Submit(job="job")], origin="submit")
    for _ in range(6):
        await ask(heavy)
    await eventually(lambda: node.submitter._pending.get(heavy) == 6)
    with pytest.raises(Busy):
        await node.submitter.submit(heavy, [Submit(job="job")], origin="submit")
    go.set()
    done = await asyncio.gather(*asked)
    assert len(done) == 15
    assert node.submitter._pending == {}


async def test_workflows_begin_by_weight(node: ServerNode, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workflows, "BATCH", 4)
    flow = {"workflow": [{"name": "ask", "approval": {}}]}
    heavy, light = await tenant(node, "heavy", 2, **flow), await tenant(node, "light", 1, **flow)
    for namespace in (heavy, light):
        await node.submitter.submit_bulk(namespace, Submit(job="job"), [b"{}"] * 8, origin="submit")
    await node.base.directory.step()
    assert await node.workflows.opener.step() == 0.0

    async def begun(namespace: int) -> int:
        return 8 - (await node.part(StatisticsPart).job_statistics.counts(namespace)).queued

    assert (await begun(heavy), await begun(light)) == (4, 2)
    while await node.workflows.opener.step() == 0.0:
        pass
    assert (await begun(heavy), await begun(light)) == (8, 8)
