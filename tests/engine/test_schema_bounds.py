"""Schema checks do not block other requests, whatever a tenant submits."""

import asyncio
import time

import pytest

from horae.engine.definitions.params import ParamsChecker
from horae.engine.server_node import ServerNode
from horae.errors import BadInput, Costly
from horae.model.fleet.submit import Submit
from tests.store_contract.world import NAMESPACE, World

ALTERNATIVES = {"properties": {"c": {"items": {"anyOf": [{"const": i} for i in range(1000)]}}}}


@pytest.fixture
async def node(world: World) -> ServerNode:
    made = ServerNode(world.env, world.store)
    await made.prepare()
    return made


async def test_a_schema_that_multiplies_is_refused_and_nothing_is_kept(node: ServerNode):
    defs = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 10} for i in range(9)}
    schema = {"$defs": {**defs, "d9": {"type": "object"}}, "$ref": "#/$defs/d0"}
    began = time.process_time()

    with pytest.raises(Costly, match="references resolved") as refused:
        await node.definitions.jobs.create(NAMESPACE, {"name": "hostile", "command": "true", "schema": schema})

    assert refused.value.fields["field"] == "schema"
    assert time.process_time() - began < 2
    assert await node.store.job_named(NAMESPACE, "hostile") is None


async def test_params_that_take_too_much_work_are_refused(node: ServerNode):
    await node.definitions.jobs.create(NAMESPACE, {"name": "slow", "command": "true", "schema": ALTERNATIVES})
    began = time.process_time()

    with pytest.raises(Costly, match="too much work"):
        await submit(node, b'{"c": [' + b",".join([b"999"] * 100_000) + b"]}")

    assert time.process_time() - began < 2
    with pytest.raises(BadInput, match="not valid under any"):
        await submit(node, b'{"c": [1000]}')
    await submit(node, b'{"c": [999]}')


async def submit(node: ServerNode, params: bytes) -> None:
    await node.submitter.submit(NAMESPACE, [Submit(job="slow", params=params)], origin="submit")


async def test_other_requests_run_while_a_bulk_is_checked(node: ServerNode):
    await node.definitions.jobs.create(NAMESPACE, {"name": "slow", "command": "true", "schema": ALTERNATIVES})
    stored = await node.store.job_named(NAMESPACE, "slow")
    assert stored is not None
    items = [b'{"c": [' + b",".join([b"999"] * 100) + b"]}"] * 60
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    watching = asyncio.ensure_future(others())
    wrong = await ParamsChecker().check_all(items, stored.job)
    watching.cancel()

    assert wrong == {}
    assert turns > 10


async def test_other_requests_run_between_concurrent_costly_submissions(node: ServerNode, monkeypatch):
    await node.definitions.jobs.create(NAMESPACE, {"name": "slow", "command": "true", "schema": ALTERNATIVES})
    params = b'{"c": [' + b",".join([b"999"] * 200) + b"]}"
    await submit(node, params)
    turn, checked = 0, []
    check = ParamsChecker.check

    def noted(self, *args, **kwargs) -> None:
        checked.append(turn)
        check(self, *args, **kwargs)

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(ParamsChecker, "check", noted)
    watching = asyncio.ensure_future(others())
    await asyncio.gather(*[submit(node, params) for _ in range(8)])
    watching.cancel()

    assert len(checked) == 8
    assert max(map(checked.count, checked)) <= 2, "too many checks in one turn of the event loop"
