"""Quotas and usage over HTTP: requests over the quota are refused with 429, and usage is reported."""

import asyncio
from typing import Any

import pytest

from horae.engine.server_node import ServerNode
from horae.env import VirtualClock
from tests.server.conftest import Api
from tests.server.test_meetings import create, submit, succeed
from tests.waiting import eventually

QUOTA = "/api/v1/namespaces/default/quota"
USAGE = "/api/v1/namespaces/default/usage"
SECOND = 1_000_000


async def test_a_quota_is_set_shown_and_removed(api: Api):
    assert (await api.get(QUOTA)).json()["queued"] is None
    assert (await api.put(QUOTA, json={"queued": 1, "submissionsPerSecond": 0.5})).status_code == 200
    shown = (await api.get(QUOTA)).json()
    assert (shown["queued"], shown["submissionsPerSecond"], shown["running"]) == (1, 0.5, None)
    await create(api)
    await api.put(QUOTA, json={"queued": 1})
    await submit(api)
    answer = await api.post("/api/v1/executions", json={"job": "report"})
    assert (answer.status_code, answer.json()["type"], answer.json()["quota"]) == (
        429,
        "urn:horae:over-quota",
        "queued",
    )
    assert answer.headers["retry-after"] == "1"
    await api.put(QUOTA, json={})
    await submit(api)
    assert [one["name"] for one in (await api.get("/api/v1/namespaces")).json()["items"]] == ["default"]


async def test_another_namespace_is_not_found(api: Api):
    assert (await api.get("/api/v1/namespaces/other/quota")).status_code == 404
    assert (await api.put("/api/v1/namespaces/other/quota", json={})).status_code == 404


@pytest.mark.parametrize("body", [{"queued": -1}, {"running": 0}, {"queud": 1}, {"submissionsPerSecond": 0}, []])
async def test_an_empty_quota_is_refused(api: Api, body):
    assert (await api.put(QUOTA, json=body)).status_code == 400


async def test_a_daily_quota_is_used_up_until_midnight(api: Api, clock: VirtualClock, node: ServerNode):
    await create(api)
    await api.put(QUOTA, json={"executionsPerDay": 2})
    for _ in range(2):
        await submit(api)
    refused = await api.post("/api/v1/executions", json={"job": "report"})
    assert (refused.status_code, refused.json()["quota"]) == (429, "executionsPerDay")
    seconds = int(refused.headers["retry-after"])
    clock.advance(seconds * SECOND)
    await node.admission.quotas.step()
    await submit(api)


async def test_a_daily_quota_stays_used_up_while_its_usage_is_written(
    api: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch
):
    await create(api)
    await api.put(QUOTA, json={"executionsPerDay": 1})
    await submit(api)
    begun, go_on, write, quotas = asyncio.Event(), asyncio.Event(), node.store.write, node.admission.quotas

    async def held(make: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await write(make)

    monkeypatch.setattr(node.store, "write", held)
    flushes = [asyncio.create_task(quotas.flush()) for _ in range(2)]
    await begun.wait()
    monkeypatch.undo()

    quotas.count_accepted([])
    await submit(api, 429)
    go_on.set()
    await asyncio.gather(*flushes)
    quotas.count_accepted([])
    await submit(api, 429)


async def test_usage_has_present_and_used_amounts(api: Api, node: ServerNode):
    await create(api)
    await submit(api, a=1)
    await succeed(node, b'{"rows":3}')
    await submit(api, a=2)
    await api.put(QUOTA, json={"queued": 1})
    await api.post("/api/v1/executions", json={"job": "report"})

    used = (await api.get(USAGE)).json()
    assert (used["queued"], used["running"], used["quota"]["queued"]) == (1, 0, 1)
    (day,) = used["days"]
    assert (day["executions"], day["storedBytes"], day["refused"]) == (2, 2 * len('{"a":1}') + len('{"rows":3}'), 1)
    assert (await api.get(USAGE, params={"from": "2000-01-01T00:00:00Z"})).status_code == 400


async def test_a_queue_accepts_executions_up_to_its_limit(api: Api, node: ServerNode):
    await create(api)
    assert (await api.put("/api/v1/queues/default", json={"maxQueued": 2})).json()["maxQueued"] == 2
    await node.admission.quotas.step()
    many = {"job": "report", "items": [{}, {}, {}]}
    refused = await api.post("/api/v1/executions", json=many)
    assert (refused.status_code, refused.json()["quota"]) == (429, "maxQueued")
    await api.post("/api/v1/executions", json={"job": "report", "items": [{}, {}]})
    assert (await api.post("/api/v1/jobs/report/trigger", json={})).status_code == 429
    assert (await api.patch("/api/v1/queues/default", json={"maxQueued": None})).json()["maxQueued"] is None
    await node.admission.quotas.step()
    await submit(api)


async def test_a_request_waits_for_room_if_the_quota_allows_it(api: Api, node: ServerNode, clock: VirtualClock):
    await create(api)
    await api.put(QUOTA, json={"queued": 1, "over": "wait"})
    first = await submit(api)
    waits = asyncio.create_task(submit(api))
    await eventually(lambda: node.admission.quotas.waiting)
    await api.post(f"/api/v1/executions/{first['executionId']}/cancel")
    clock.advance(SECOND)
    await waits

    clock_began = clock.monotonic()
    refused = asyncio.create_task(api.post("/api/v1/executions", json={"job": "report"}))
    await eventually(lambda: node.admission.quotas.waiting)
    clock.advance(21 * SECOND)
    assert (await refused).status_code == 429
    assert clock.monotonic() >= clock_began + 20
    assert (await api.put(QUOTA, json={"over": "never"})).status_code == 400


async def test_refused_requests_do_not_all_read_the_store(api: Api, node: ServerNode, clock: VirtualClock):
    await create(api)
    await api.put(QUOTA, json={"queued": 1})
    first = await submit(api)
    await submit(api, 429)
    asked = node.store.driver.statements["room_in_queue"]
    for _ in range(5):
        await submit(api, 429)
    assert node.store.driver.statements["room_in_queue"] == asked
    await api.post(f"/api/v1/executions/{first['executionId']}/cancel")
    clock.advance(SECOND // 5)
    await submit(api)
