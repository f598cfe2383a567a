"""Namespaces over HTTP: their creation, visibility, settings and quotas."""

import pytest

from horae.engine.server_node import ServerNode
from horae.env import VirtualClock
from tests.server.conftest import Api, Connect

NAMESPACES = "/api/v1/namespaces"
DAY = 86_400_000_000


async def tenant(api: Api, connect: Connect, name: str, **said) -> Api:
    """Create a namespace and return a client of its administrator."""
    made = await api.post(NAMESPACES, json={"name": name, **said})
    assert made.status_code == 201, made.text
    key = await api.post("/api/v1/keys", json={"name": "a", "role": "admin"}, headers={"horae-namespace": name})
    return connect(authorization=f"Bearer {key.json()['key']}")


async def test_a_namespace_is_created_shown_changed_and_deleted(api: Api, connect: Connect):
    made = await api.post(NAMESPACES, json={"name": "billing", "retention": {"success": "7d"}, "queuePolicy": "fair"})
    assert (made.status_code, made.headers["location"]) == (201, f"{NAMESPACES}/billing")
    assert made.json()["retention"] == {"success": "7d"}
    again = await api.post(NAMESPACES, json={"name": "billing"})
    assert (again.status_code, again.json()["type"]) == (409, "urn:horae:conflict")
    assert [one["name"] for one in (await api.get(NAMESPACES)).json()["items"]] == ["billing", "default"]
    changed = await api.patch(f"{NAMESPACES}/billing", json={"weight": 3, "retention": None})
    assert (changed.json()["weight"], changed.json()["retention"]) == (3.0, {})
    assert (await api.get(f"{NAMESPACES}/billing")).json() == changed.json()
    queues = await api.get("/api/v1/queues", headers={"horae-namespace": "billing"})
    assert [(queue["name"], queue["policy"]["kind"]) for queue in queues.json()["items"]] == [("default", "fair")]
    assert (await api.delete(f"{NAMESPACES}/billing")).status_code == 204
    assert (await api.get(f"{NAMESPACES}/billing")).status_code == 404
    assert (await api.delete(f"{NAMESPACES}/default")).status_code == 409


async def test_a_tenant_sees_only_its_own_namespace_and_cannot_raise_its_limits(api: Api, connect: Connect):
    mine = await tenant(api, connect, "billing")
    assert [one["name"] for one in (await mine.get(NAMESPACES)).json()["items"]] == ["billing"]
    assert (await mine.get(f"{NAMESPACES}/default")).status_code == 404
    assert (await mine.get(f"{NAMESPACES}/default/usage")).status_code == 404
    assert (await mine.get(f"{NAMESPACES}/billing/quota")).json()["namespace"] == "billing"
    assert (await mine.get(f"{NAMESPACES}/billing/usage")).status_code == 200
    assert (await mine.patch(f"{NAMESPACES}/billing", json={"description": "ours"})).status_code == 200
    assert (await mine.patch(f"{NAMESPACES}/billing", json={"retention": "7d"})).status_code == 200
    for body in ({"weight": 9}, {"retention": "400d"}):
        refused = await mine.patch(f"{NAMESPACES}/billing", json=body)
        assert (refused.status_code, refused.json()["type"]) == (403, "urn:horae:forbidden")
    assert (await mine.post(NAMESPACES, json={"name": "more"})).status_code == 403
    assert (await mine.delete(f"{NAMESPACES}/billing")).status_code == 403
    assert (await mine.put(f"{NAMESPACES}/billing/quota", json={})).status_code == 403
    assert (await api.put(f"{NAMESPACES}/billing/quota", json={"queued": 5})).json()["queued"] == 5
    assert (await mine.get(f"{NAMESPACES}/billing/quota")).json()["queued"] == 5
    assert (await api.get(f"{NAMESPACES}/default/quota")).json()["queued"] is None


async def test_a_used_namespace_is_not_deleted_and_its_keys_end_with_it(
    api: Api, connect: Connect, clock: VirtualClock
):
    mine = await tenant(api, connect, "billing")
    await mine.post("/api/v1/jobs", json={"name": "report", "command": "true"})
    await mine.post("/api/v1/executions", json={"job": "report"})
    refused = await api.delete(f"{NAMESPACES}/billing")
    assert refused.status_code == 409
    assert "1 job, 1 execution" in refused.json()["detail"]
    await mine.delete("/api/v1/jobs/report", params={"queued": "cancel"})
    assert (await api.delete(f"{NAMESPACES}/billing")).status_code == 204
    clock.advance(6_000_000)
    assert (await mine.get("/api/v1/jobs")).status_code == 401
    there = {"horae-namespace": "billing"}
    assert (await api.get("/api/v1/jobs", headers=there)).status_code == 404
    await api.post(NAMESPACES, json={"name": "billing"})
    clock.advance(6_000_000)
    assert (await api.get("/api/v1/jobs", headers=there)).json()["items"] == []
    assert (await mine.get("/api/v1/jobs")).status_code == 401


async def test_jobs_inherit_defaults_of_their_namespace(api: Api, connect: Connect):
    said = {"retries": 3, "timeout": "1h", "queue": "slow", "tags": {"team": "billing"}}
    mine = await tenant(api, connect, "billing", defaults=said)
    made = await mine.post("/api/v1/jobs", json={"name": "report", "command": "true", "timeout": "5m"})
    shown = made.json()
    assert (shown["retries"], shown["timeout"], shown["queue"], shown["tags"]) == (3, "5m", "slow", {"team": "billing"})
    elsewhere = (await api.post("/api/v1/jobs", json={"name": "report", "command": "true"})).json()
    assert (elsewhere["retries"], elsewhere["queue"]) == (0, "default")
    await api.patch(f"{NAMESPACES}/billing", json={"defaults": None})
    assert (await mine.patch("/api/v1/jobs/report", json={"priority": 1})).json()["retries"] == 3
    assert (await mine.patch("/api/v1/jobs/report", json={"retries": None})).json()["retries"] == 0


async def test_a_queue_without_a_policy_inherits_that_of_its_namespace(api: Api, connect: Connect):
    mine = await tenant(api, connect, "billing", queuePolicy="fifo")
    assert (await mine.put("/api/v1/queues/own", json={"maxQueued": 5})).json()["policy"]["kind"] == "fifo"
    assert (await mine.put("/api/v1/queues/own", json={"policy": "priority"})).json()["policy"]["kind"] == "priority"
    assert (await api.put("/api/v1/queues/own", json={})).json()["policy"]["kind"] == "priority"


async def test_ended_executions_are_kept_for_the_retention_of_their_namespace(
    api: Api, connect: Connect, node: ServerNode, clock: VirtualClock
):
    mine = await tenant(api, connect, "billing", retention={"cancelled": "2d"})
    gone = {}
    for who in (mine, api):
        await who.post("/api/v1/jobs", json={"name": "report", "command": "true"})
        gone[who] = (await who.post("/api/v1/executions", json={"job": "report"})).json()["executionId"]
        await who.post(f"/api/v1/executions/{gone[who]}/cancel")
    clock.advance(3 * DAY)
    node.base.clock.accept()
    await node.work.sweeper.step()
    answer = await mine.get(f"/api/v1/executions/{gone[mine]}")
    assert (answer.status_code, answer.json()["type"]) == (410, "urn:horae:gone")
    assert (await api.get(f"/api/v1/executions/{gone[api]}")).status_code == 200


@pytest.mark.parametrize("name", ["", "a b", "-x", "x" * 129, "../default", 5])
async def test_an_invalid_name_is_refused(api: Api, name):
    assert (await api.post(NAMESPACES, json={"name": name})).status_code == 400
    assert (await api.post(NAMESPACES, json={})).status_code == 400


async def test_a_worker_receives_the_name_of_its_namespace(api: Api, connect: Connect):
    await tenant(api, connect, "billing")
    answer = await api.post(
        "/api/v1/keys", json={"name": "w", "role": "worker"}, headers={"horae-namespace": "billing"}
    )
    worker = connect(authorization=f"Bearer {answer.json()['key']}")
    told = await worker.post("/api/v1/sessions", json={"protocol": 1, "worker": "w", "concurrency": 1, "queues": ["q"]})
    assert told.json()["namespace"] == "billing"
