"""Signals over HTTP: their acceptance and refusal, and repetitions that send nothing twice."""

import pytest

from horae.engine.server_node import ServerNode
from tests.server.conftest import Api, Connect


async def submit(api: Api) -> str:
    await api.post("/api/v1/jobs", json={"name": "waits", "command": ["true"]})
    return (await api.post("/api/v1/executions", json={"job": "waits"})).json()["executionId"]


async def test_a_signal_is_stored_for_an_unstarted_execution(api: Api):
    id = await submit(api)
    answer = await api.post(f"/api/v1/executions/{id}/signals", json={"name": "go", "payload": [1]})

    assert answer.status_code == 202
    assert answer.json() == {"executionId": id, "name": "go", "delivered": False}


async def test_the_same_key_sends_once_and_with_another_body_is_refused(api: Api, node: ServerNode):
    id = await submit(api)
    path, key = f"/api/v1/executions/{id}/signals", {"Idempotency-Key": "k1"}
    for _ in range(2):
        assert (await api.post(path, json={"name": "go"}, headers=key)).status_code == 202
    assert (await api.post(path, json={"name": "other"}, headers=key)).status_code == 422
    await node.work.signals.send(1, id, "go", b"", "k1")  # a server that died before it stored its answer

    assert await count(node) == 1


async def count(node: ServerNode) -> int:
    from horae.store.driver import one
    from horae.store.script import Statement

    rows = await node.store.read(one(Statement("test", "SELECT count(*) FROM signals")))
    return int(rows[0][0])


async def test_ended_executions_refuse_signals_and_missing_ones_are_404(api: Api):
    id = await submit(api)
    await api.post(f"/api/v1/executions/{id}/cancel", json={})

    ended = await api.post(f"/api/v1/executions/{id}/signals", json={"name": "go"})
    assert (ended.status_code, ended.json()["detail"]) == (409, f"Execution {id} has ended.")
    nobody = await api.post("/api/v1/executions/01a1de89-0525-762a-bd32-17a5b5a40000/signals", json={"name": "go"})
    assert nobody.status_code in (404, 410)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"name": ""}, 400),
        ({"name": "x" * 201}, 400),
        ({"name": "go", "payload": "x" * 70_000}, 413),
        ({"name": "go", "unknown": 1}, 400),
    ],
)
async def test_bad_signals_are_refused(api: Api, body: dict, status: int):
    id = await submit(api)
    answer = await api.post(f"/api/v1/executions/{id}/signals", json=body)

    assert answer.status_code == status
    assert answer.json()["remedy"]


async def test_a_worker_may_not_send_signals(worker: Api, connect: Connect):
    answer = await worker.post("/api/v1/executions/01a1de89-0525-762a-bd32-17a5b5a40000/signals", json={"name": "go"})
    assert answer.status_code == 403
