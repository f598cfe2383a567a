"""The routes of holds and maintenance windows: opened, released, listed, and refused with a remedy."""

import pytest

from horae.engine.server_node import ServerNode
from horae.env import SECOND
from tests.server.conftest import Api, Connect, key_for

URL = "/api/v1/queues/default/hold"
JOB = {"name": "job", "command": "true"}


async def with_queue(api: Api) -> None:
    assert (await api.post("/api/v1/jobs", json=JOB)).status_code == 201


async def test_a_queue_is_held_listed_and_released(api: Api, clock):
    await with_queue(api)
    made = await api.post(URL, json={"for": "30m", "reason": "deploy-123", "drain": True})
    hold = made.json()

    assert made.status_code == 201
    assert (hold["queue"], hold["state"], hold["reason"], hold["drain"], hold["running"]) == (
        "default", "active", "deploy-123", True, 0,
    )  # fmt: skip
    assert hold["createdBy"].startswith("key:")
    assert (hold["from"], hold["until"]) == ("2027-01-15T08:00:00Z", "2027-01-15T08:30:00Z")
    assert (await api.get("/api/v1/holds")).json()["items"] == [hold]
    (queue,) = (await api.get("/api/v1/queues")).json()["items"]
    assert (queue["state"], queue["running"], queue["holds"]) == ("held", 0, [hold])
    assert 'horae_held_queues{namespace="default",queue="default"} 1.0' in (await api.get("/metrics")).text

    released = await api.delete(URL, params={"reason": "deploy-123"})
    assert (released.status_code, released.json()["note"], released.json()["remaining"]) == (
        200,
        "1 hold released.",
        [],
    )
    assert (await api.get("/api/v1/holds")).json()["items"] == []
    (ended,) = (await api.get("/api/v1/holds", params={"ended": "true"})).json()["items"]
    assert (ended["state"], ended["endedBy"], ended["endedAt"]) == ("ended", hold["createdBy"], "2027-01-15T08:00:00Z")
    (queue,) = (await api.get("/api/v1/queues")).json()["items"]
    assert (queue["state"], queue["holds"]) == ("active", [])
    assert "horae_held_queues{" not in (await api.get("/metrics")).text
    assert (await api.delete(URL)).json()["note"] == 'Queue "default" was not held by hand.'


async def test_a_held_execution_says_why(api: Api):
    await with_queue(api)
    await api.post(URL, json={"for": "30m", "reason": "deploy-123"})
    id = (await api.post("/api/v1/jobs/job/trigger", json={})).json()["executionId"]

    shown = (await api.get(f"/api/v1/executions/{id}")).json()
    told = 'The queue "default" is held until 2027-01-15T08:30:00Z (deploy-123); `horae queues release default` ends'
    assert (shown["status"], shown["hint"]) == ("queued", f"{told} it now.")
    assert (await api.get("/api/v1/jobs/job")).json()["notes"] == [f"{told} it now."]


async def test_the_same_request_again_moves_the_end(api: Api, clock):
    await with_queue(api)
    first = (await api.post(URL, json={"for": "30m", "reason": "deploy-123"})).json()
    clock.advance(60 * SECOND)
    again = (await api.post(URL, json={"for": "30m", "reason": "deploy-123"})).json()

    assert (again["holdId"], again["until"]) == (first["holdId"], "2027-01-15T08:31:00Z")
    assert len((await api.get("/api/v1/holds", params={"queue": "default"})).json()["items"]) == 1


async def test_all_queues_are_held_and_released(api: Api):
    await with_queue(api)
    made = await api.post("/api/v1/holds", json={"until": "2027-01-15T09:00:00Z"})
    assert (made.status_code, made.json()["queue"]) == (201, None)
    (queue,) = (await api.get("/api/v1/queues")).json()["items"]
    assert queue["state"] == "held"
    assert "is still held by a hold of the whole namespace" in (await api.delete(URL)).json()["note"]
    assert (await api.delete("/api/v1/holds")).json()["note"] == "1 hold released."


async def test_a_hold_can_be_planned(api: Api):
    await with_queue(api)
    made = (await api.post(URL, json={"from": "2027-01-15T09:00:00Z", "for": "1h"})).json()
    assert (made["state"], made["from"], made["until"]) == ("planned", "2027-01-15T09:00:00Z", "2027-01-15T10:00:00Z")
    assert (await api.get("/api/v1/queues")).json()["items"][0]["state"] == "active"


async def test_windows_are_attached_and_removed(api: Api):
    await with_queue(api)
    nights = {"hours": "MON-SUN 22:00-24:00"}
    await api.put("/api/v1/calendars/nights", json=nights)
    for url in ("/api/v1/queues/default/windows/nights", "/api/v1/windows/nights"):
        made = await api.put(url, json={"reason": "backup", "drain": True})
        assert made.status_code == 200
        assert (made.json()["calendar"], made.json()["state"]) == ("nights", "planned")
        assert (made.json()["from"], made.json()["until"]) == ("2027-01-15T22:00:00Z", "2027-01-16T00:00:00Z")
        assert (await api.put(url, json={})).json()["holdId"] == made.json()["holdId"]
        assert (await api.delete("/api/v1/calendars/nights")).status_code == 409
        assert (await api.delete(url)).status_code == 204
        gone = await api.delete(url)
        assert (gone.status_code, "no maintenance window" in gone.json()["detail"]) == (404, True)
    assert (await api.delete("/api/v1/calendars/nights")).status_code == 204


async def test_invalid_holds_are_refused_with_a_remedy(api: Api):
    await with_queue(api)
    unknown = await api.post("/api/v1/queues/defualt/hold", json={"for": "30m"})
    assert (unknown.status_code, unknown.json()["remedy"]) == (404, 'Did you mean "default"?')
    for body, told in [
        ({}, "neither is given"),
        ({"for": "31d"}, "at most 30d"),
        ({"for": "-5m"}, "negative"),
        ({"for": "soon"}, "soon"),
        ({"until": "2027-01-15T07:00:00Z"}, "not after it begins"),
        ({"from": "2027-01-15T10:00:00Z", "until": "2027-01-15T09:00:00Z"}, "not after it begins"),
        ({"until": "tomorrow"}, "tomorrow"),
    ]:
        refused = await api.post(URL, json=body)
        assert (refused.status_code, told in refused.json()["detail"]) == (400, True), refused.json()
        assert refused.json()["remedy"]
    nowhere = await api.put("/api/v1/queues/default/windows/nights", json={})
    assert (nowhere.status_code, 'no calendar named "nights"' in nowhere.json()["detail"]) == (404, True)


async def test_only_administrators_hold(connect: Connect, node: ServerNode, api: Api):
    await with_queue(api)
    worker = connect(authorization=f"Bearer {await key_for(node, 'worker')}")
    assert (await worker.post(URL, json={"for": "30m"})).status_code == 403


@pytest.mark.parametrize("of", ["", "/queues/default"])
async def test_a_window_by_a_calendar_that_is_not_there_is_404(api: Api, of: str):
    answer = await api.put(f"/api/v1{of}/windows/nightly", json={})
    assert (answer.status_code, "nightly" in answer.json()["detail"]) == (404, True)
