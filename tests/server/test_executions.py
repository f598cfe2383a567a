"""The execution routes: submitted singly or in bulk, unique by key, repeatable, read and cancelled."""

import msgspec
import pytest

from horae.engine.server_node import ServerNode
from horae.model.fleet.protocol import PROTOCOL, Answer, Exchange, Failure, Outcome
from tests.server.conftest import Api
from tests.server.test_jobs import create

EXECUTIONS = "/api/v1/executions"


async def run_one(worker: Api, **outcome: object) -> Outcome:
    """Register, take one execution, and report this outcome."""
    session = (await worker.post("/api/v1/sessions", json={"protocol": PROTOCOL, "worker": "w"})).json()["sessionId"]
    path = f"/api/v1/sessions/{session}/exchange"
    taken = await worker.post(path, content=msgspec.json.encode(Exchange(channel=0, n=1, free=1)))
    (grant,) = msgspec.json.decode(taken.content, type=Answer).slices
    done = Outcome(parcel=grant.parcel, lo=grant.lo, hi=grant.hi, attempt=grant.attempt, **outcome)
    told = await worker.post(path, content=msgspec.json.encode(Exchange(channel=0, n=2, outcomes=[done])))
    assert told.status_code == 200
    return done


async def test_one_is_submitted_and_read(api: Api):
    await create(api)
    answer = await api.post(EXECUTIONS, json={"job": "report", "params": {"day": 1}, "priority": 9})
    assert answer.status_code == 201
    assert answer.json() == {"executionId": answer.json()["executionId"], "status": "queued", "deduplicated": False}

    read = (await api.get(answer.headers["location"])).json()

    assert (read["status"], read["params"], read["priority"]) == ("queued", {"day": 1}, 9)


async def test_a_key_makes_it_unique(api: Api):
    await create(api)
    first = await api.post(EXECUTIONS, json={"job": "report", "key": "k"})
    second = await api.post(EXECUTIONS, json={"job": "report", "key": "k"})
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["deduplicated"]
    assert second.json()["executionId"] == first.json()["executionId"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("executions", {"job": "report", "keyFor": "5m"}),
        ("executions", {"job": "report", "items": [{}], "keyFor": "5m", "atomic": True}),
        ("jobs/report/trigger", {"keyFor": "5m"}),
    ],
)
async def test_a_span_for_a_key_that_is_not_there_is_refused(api: Api, path: str, body: dict[str, object]):
    await create(api, "report")
    answer = await api.post(f"/api/v1/{path}", json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, "keyFor")
    assert "remove `keyFor`" in answer.json()["remedy"]


async def test_a_trigger_whose_key_is_taken_answers_200(api: Api):
    await create(api)
    first, second = [await api.post("/api/v1/jobs/report/trigger", json={"key": "k"}) for _ in range(2)]
    assert (first.status_code, second.status_code) == (202, 200)
    assert (second.json()["executionId"], second.json()["deduplicated"]) == (first.json()["executionId"], True)


async def test_params_are_checked_by_their_formats_as_functions_read_them(api: Api):
    formats = {"day": "date", "span": "duration", "id": "uuid"}
    schema = {"type": "object", "properties": {name: {"type": "string", "format": f} for name, f in formats.items()}}
    await create(api, schema=schema)
    good = {"day": "2026-11-15", "span": "PT1.5S", "id": "0198c5a0000070008000000000000000"}

    assert (await api.post(EXECUTIONS, json={"job": "report", "params": good})).status_code == 201
    for name in formats:
        answer = await api.post(EXECUTIONS, json={"job": "report", "params": good | {name: "tomorrow"}})
        assert (answer.status_code, answer.json()["field"]) == (400, f"params.{name}")


@pytest.mark.parametrize("path", [EXECUTIONS, "/api/v1/jobs/report/trigger"])
async def test_a_repeated_submission_is_answered_alike_and_another_body_is_422(path: str, api: Api):
    await create(api)
    body = {"params": {"day": 1}} | ({"job": "report"} if path == EXECUTIONS else {})
    once = {"idempotency-key": "k"}
    first, second = [await api.post(path, json=body, headers=once) for _ in range(2)]
    other = await api.post(path, json=body | {"params": {"day": 2}}, headers=once)

    assert first.status_code == second.status_code < 300
    assert first.json() == second.json()
    assert (other.status_code, other.json()["type"]) == (422, "urn:horae:key-reused")
    assert len((await api.get(EXECUTIONS)).json()["items"]) == 1


async def test_a_delay_or_an_instant_makes_it_wait(api: Api):
    await create(api)
    for body in ({"delay": "10m"}, {"delay": 600}, {"at": "2027-01-15T08:10:00Z"}):
        answer = await api.post("/api/v1/jobs/report/trigger", json=body)
        assert answer.json()["status"] == "waiting"
        read = (await api.get(f"{EXECUTIONS}/{answer.json()['executionId']}")).json()
        assert read["scheduledAt"] == "2027-01-15T08:10:00Z"


async def test_many_of_one_job(api: Api):
    await create(api)
    answer = await api.post(EXECUTIONS, json={"job": "report", "items": [{"i": n} for n in range(3)], "priority": 1})
    assert answer.status_code == 201
    assert (answer.json()["accepted"], answer.json()["refused"]) == (3, 0)
    ids = [item["executionId"] for item in answer.json()["items"]]
    assert [(await api.get(f"{EXECUTIONS}/{id}")).json()["params"] for id in ids] == [{"i": n} for n in range(3)]


async def test_many_with_their_own_options_some_refused(api: Api):
    await create(api)
    items = [{"job": "report", "params": {"i": 1}}, {"job": "nothing"}, {"job": "report", "key": "k"}]

    answer = await api.post(EXECUTIONS, json={"items": items})

    body = answer.json()
    assert (answer.status_code, body["accepted"], body["refused"]) == (207, 2, 1)
    assert body["items"][1]["error"]["type"] == "urn:horae:not-found"
    assert "executionId" not in body["items"][1]


async def test_all_or_nothing(api: Api):
    await create(api)
    items = [{"job": "report"}, {"job": "nothing"}]
    answer = await api.post(EXECUTIONS, json={"items": items, "atomic": True})
    assert (answer.status_code, answer.json()["index"]) == (404, 1)
    assert (await api.get(EXECUTIONS)).json()["items"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "job"),
        ({"items": []}, "items"),
        ({"items": [{"params": {}}], "atomic": True}, "items[0].job"),
        ({"items": [{"job": "report", "colour": 1}], "atomic": True}, "items[0].colour"),
        ({"items": [7], "atomic": True}, "items[0]"),
        ({"items": [{"job": "report"}], "priority": 3}, "priority"),
        ({"items": [{"job": "report"}], "priority": 0}, "priority"),
        ({"items": [{"job": "report"}], "delay": 0}, "delay"),
        ({"items": [{"job": "report"}], "keyFor": "5m"}, "keyFor"),
        ({"job": "report", "items": [{}], "key": "k"}, "key"),
        ({"job": "report", "delay": "soon"}, "delay"),
        ({"job": "report", "at": "noon"}, "at"),
        ({"job": "report", "delay": 1, "at": "2030-01-01T00:00:00Z"}, "delay"),
        ({"job": "report", "priority": 10}, "priority"),
        ({"job": "report", "key": ""}, "key"),
        ({"job": "report", "params": [1]}, "params"),
        ({"job": "report", "colour": "red"}, "colour"),
    ],
)
async def test_a_bad_submission_is_400_with_its_field(body: dict, field: str, api: Api):
    await create(api)
    answer = await api.post(EXECUTIONS, json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert (await api.get(EXECUTIONS)).json()["items"] == []


async def test_an_item_that_cannot_be_read_is_refused_alone(api: Api):
    await create(api)
    items = [{"job": "report"}, {"job": "report", "colour": 1}, {"params": {}}, {"job": "report", "priority": 11}]
    answer = await api.post(EXECUTIONS, json={"items": items})
    assert (answer.status_code, answer.json()["accepted"], answer.json()["refused"]) == (207, 1, 3)
    assert [item.get("error", {}).get("field") for item in answer.json()["items"]] == [
        None,
        "items[1].colour",
        "items[2].job",
        "items[3].priority",
    ]


async def test_it_is_cancelled_once(api: Api):
    await create(api)
    id = (await api.post("/api/v1/jobs/report/trigger")).json()["executionId"]

    answer = await api.post(f"{EXECUTIONS}/{id}/cancel", json={"reason": "not today"})

    assert answer.json()["outcome"] == "cancelled"
    assert (await api.get(f"{EXECUTIONS}/{id}")).json()["status"] == "cancelled"


async def test_missing_executions_are_404(api: Api):
    for id in ("0198c5a0-0000-7000-8000-000000000000", "nonsense"):
        for path in ("", "/logs", "/attempts"):
            assert (await api.get(f"{EXECUTIONS}/{id}{path}")).status_code in (404, 410)


async def test_a_worker_runs_it_and_the_result_is_read(api: Api, worker: Api):
    await create(api)
    id = (await api.post("/api/v1/jobs/report/trigger")).json()["executionId"]

    await run_one(worker, outcome="success", results=[msgspec.Raw(b'{"rows":3}')])

    read = (await api.get(f"{EXECUTIONS}/{id}")).json()
    assert (read["status"], read["result"], read["workerId"]) == ("success", {"rows": 3}, "w")
    assert (await api.get(f"{EXECUTIONS}/{id}/logs")).json()["items"] == []
    assert len((await api.get(f"{EXECUTIONS}/{id}/attempts")).json()["items"]) == 1
    assert 'horae_ended_executions_total{outcome="success"} 1.0' in (await api.get("/metrics")).text
    assert (await api.get("/api/v1/jobs/report/executions?status=success")).json()["items"][0]["executionId"] == id


async def test_a_failure_is_a_dead_letter_and_can_be_retried(api: Api, worker: Api):
    await create(api)
    id = (await api.post("/api/v1/jobs/report/trigger")).json()["executionId"]
    await run_one(worker, outcome="failed", error=Failure(type="ValueError", message="no"))

    (letter,) = (await api.get("/api/v1/dlq?errorType=ValueError")).json()["items"]
    assert letter["execution"]["executionId"] == id
    assert (await api.get(f"/api/v1/dlq/{id}")).json()["state"] == "open"

    groups = (await api.get("/api/v1/dlq/groups")).json()
    assert [(g["errorType"], g["count"], g["newestId"]) for g in groups["items"]] == [("ValueError", 1, id)]
    assert (groups["complete"], (await api.get("/api/v1/dlq/groups?state=retried")).json()["items"]) == (True, [])

    retried = (await api.post("/api/v1/dlq/retry", json={"ids": [id]})).json()
    assert retried["done"] == 1
    assert (await api.get(f"{EXECUTIONS}/{retried['executionIds'][0]}")).json()["retryOf"] == id
    assert (await api.get("/api/v1/dlq")).json()["items"] == []


@pytest.mark.parametrize("by_id", [True, False])
async def test_dead_letters_are_discarded_by_id_or_filter(api: Api, worker: Api, by_id: bool):
    await create(api)
    id = (await api.post("/api/v1/jobs/report/trigger")).json()["executionId"]
    await run_one(worker, outcome="failed", error=Failure(type="ValueError", message="no"))

    assert (await api.post("/api/v1/dlq/discard", json={})).json()["field"] == "ids"
    assert (await api.post("/api/v1/dlq/discard", json={"ids": [], "filter": {}})).json()["field"] == "filter"
    chosen = {"ids": [id]} if by_id else {"filter": {"job": "report"}}
    done = (await api.post("/api/v1/dlq/discard", json=chosen)).json()
    assert (done["done"], done["executionIds"]) == (1, [id])
    assert (await api.get("/api/v1/dlq")).json()["items"] == []


async def test_queues_report_their_depth(api: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch):
    await create(api)
    await api.post(EXECUTIONS, json={"job": "report", "items": [{}] * 5})
    with monkeypatch.context() as patch:
        patch.setattr(node.base.directory, "lanes", {})  # another server has added the lanes just now
        (queue,) = (await api.get("/api/v1/queues")).json()["items"]
    assert queue["queued"] == 5
    assert sum(lane["queued"] for lane in queue["lanes"]) == 5
    assert 'horae_queued_executions{namespace="default",queue="default"} 5.0' in (await api.get("/metrics")).text


async def test_counts(api: Api):
    await create(api)
    await api.post(EXECUTIONS, json={"job": "report", "items": [{}] * 2})
    assert (await api.get(f"{EXECUTIONS}/counts")).json()["queued"] == 2
