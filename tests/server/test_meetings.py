"""Submissions that share an execution or a result: requests and answers."""

import pytest

from horae.engine.server_node import ServerNode
from horae.env import VirtualClock
from horae.model.fleet.protocol import Outcome, Register
from tests.engine.explain_stage import Worker
from tests.server.conftest import Api

EXECUTIONS = "/api/v1/executions"
SECOND = 1_000_000
RULES = [{"unique": {"for": "24h"}}, {"batch": {"size": 1}}, {"cache": {"ttl": "1h"}}, {"debounce": {"wait": "1s"}}]


async def create(api: Api, **more) -> None:
    answer = await api.post("/api/v1/jobs", json={"name": "report", "command": "true", **more})
    assert answer.status_code == 201, answer.text


async def submit(api: Api, status: int = 201, **params) -> dict:
    answer = await api.post(EXECUTIONS, json={"job": "report", "params": params})
    assert answer.status_code == status, answer.text
    return answer.json()


async def work(node: ServerNode) -> Worker:
    """Return a worker that has taken the available work."""
    await node.base.directory.step()
    session = await node.gateway.register(1, Register(protocol=1, worker="w", concurrency=10, queues=["default"]))
    worker = Worker(node, session.session_id, 10)
    assert await worker.ask()
    return worker


async def succeed(node: ServerNode, result: bytes) -> None:
    """Let a worker take the available work and succeed."""
    worker = await work(node)
    done = [
        Outcome(parcel=s.parcel, lo=s.lo, hi=s.hi, attempt=s.attempt, outcome="success", results=[result])
        for s in worker.holds
    ]
    await worker.ask(*done, free=0)


async def test_the_rules_of_a_job_are_shown_as_they_are_given(api: Api):
    await create(api, unique={"key": "${params.a}", "for": "24h", "keep": "latest"}, cache={"ttl": "1h"})
    shown = (await api.get("/api/v1/jobs/report")).json()
    assert shown["unique"] == {"key": "${params.a}", "for": "1d", "keep": "latest"}
    assert shown["cache"] == {"ttl": "1h"}
    changed = await api.patch("/api/v1/jobs/report", json={"unique": True, "cache": None})
    assert (changed.json()["unique"], changed.json()["cache"]) == ({"for": "live", "keep": "first"}, None)


async def test_a_repeat_of_a_unique_key_answers_with_the_execution_it_stands_for(api: Api):
    await create(api, unique={"key": "${params.a}-${tags.team}"}, tags={"team": "data"})
    first = await submit(api, a=1)
    again = await submit(api, 200, a=1)
    assert (again["executionId"], again["deduplicated"]) == (first["executionId"], True)
    assert (await submit(api, a=2))["executionId"] != first["executionId"]
    triggered = await api.post("/api/v1/jobs/report/trigger", json={"params": {"a": 1}})
    assert (triggered.status_code, triggered.json()["executionId"]) == (200, first["executionId"])


async def test_a_key_that_cannot_be_filled_in_refuses_the_submission(api: Api):
    await create(api, unique={"key": "${params.customer}"})
    refused = await submit(api, 400, other=1)
    assert refused["field"] == "unique.key"
    assert "${params.customer}" in refused["detail"] + refused["remedy"]
    lot = await api.post(EXECUTIONS, json={"job": "report", "items": [{"customer": 1}, {}, {"customer": 1}]})
    items = lot.json()["items"]
    assert (lot.status_code, [("error" in item, item.get("deduplicated")) for item in items]) == (
        207,
        [(False, False), (True, None), (False, True)],
    )


async def test_each_submission_of_a_batch_gets_its_index(api: Api, clock: VirtualClock, node: ServerNode):
    schema = {"type": "object", "properties": {"items": {"items": {"required": ["n"]}}}, "required": ["items"]}
    await create(api, batch={"size": 3, "wait": "5s"}, schema=schema)
    first = await submit(api, n=1)
    assert (first["batched"], first["index"], first["status"]) == (True, 0, "waiting")
    rest = (await api.post(EXECUTIONS, json={"job": "report", "items": [{"n": 2}, {"n": 3}, {"n": 4}]})).json()
    assert [item["index"] for item in rest["items"]] == [1, 2, 0]
    await submit(api, 400, m=1)
    shown = (await api.get(f"{EXECUTIONS}/{first['executionId']}")).json()
    assert (shown["params"], shown["reason"]) == ({"items": [{"n": 1}, {"n": 2}, {"n": 3}]}, "batch")
    await node.work.promoter.step()
    assert (await api.get(f"{EXECUTIONS}/{first['executionId']}")).json()["status"] == "queued"


async def test_a_debounced_submission_returns_its_future_execution(api: Api, clock: VirtualClock, node: ServerNode):
    await create(api, debounce={"wait": "5s", "key": "${params.page}"})
    first = await submit(api, page=1, n=1)
    clock.advance(4 * SECOND)
    again = await submit(api, 200, page=1, n=2)
    assert (again["executionId"], again["status"]) == (first["executionId"], "waiting")
    clock.advance(5 * SECOND)
    await node.work.promoter.step()
    shown = (await api.get(f"{EXECUTIONS}/{first['executionId']}")).json()
    assert (shown["status"], shown["params"]) == ("queued", {"page": 1, "n": 2})
    refused = await api.post(EXECUTIONS, json={"job": "report", "params": {"page": 1}, "delay": "1m"})
    assert (refused.status_code, refused.json()["field"]) == (400, "delay")


async def test_a_cached_result_answers_until_it_is_deleted(api: Api, node: ServerNode):
    await create(api, cache={"ttl": "1h"})
    first = await submit(api, a=1, b=2)
    await succeed(node, b'{"rows":3}')

    cached = await submit(api, 200, b=2, a=1)
    assert (cached["executionId"], cached["cached"], cached["result"]) == (first["executionId"], True, {"rows": 3})
    assert "cached" not in await submit(api, a=2)
    assert (await api.delete("/api/v1/jobs/report/cache")).json() == {"forgotten": 2}
    assert "cached" not in await submit(api, a=1, b=2)


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"debounce": {"wait": "1s"}, "batch": {"size": 2}}, "batch"),
        ({"unique": True, "debounce": {"wait": "1s"}}, "debounce"),
        ({"debounce": {"wait": "10s", "max": "1s"}}, "debounce.max"),
        ({"debounce": {}}, "debounce.wait"),
        ({"batch": {"size": 0}}, "batch.size"),
        ({"batch": {"wait": "1s"}}, "batch.size"),
        ({"cache": {"key": "a"}}, "cache.ttl"),
        ({"unique": {"for": "0s"}}, "unique.for"),
        ({"unique": {"keep": "both"}}, "unique.keep"),
        ({"unique": {"key": "${customer}"}}, "unique.key"),
        ({"unique": {"until": "1h"}}, "unique.until"),
    ],
)
async def test_rules_that_contradict_or_say_nothing_are_refused(api: Api, rules: dict, field: str):
    answer = await api.post("/api/v1/jobs", json={"name": "report", "command": "true", **rules})
    assert (answer.status_code, answer.json()["field"]) == (400, field)


@pytest.mark.parametrize("rules", RULES)
async def test_a_failed_execution_is_retried_with_its_options(
    api: Api, node: ServerNode, clock: VirtualClock, rules: dict
):
    await create(api, **rules)
    first = (await submit(api, n=1))["executionId"]
    clock.advance(SECOND)
    await node.work.promoter.step()
    await (await work(node)).end("failed")
    params = (await api.get(f"{EXECUTIONS}/{first}")).json()["params"]

    await api.post("/api/v1/dlq/retry", json={"ids": [first]})
    (again,) = [one for one in (await api.get(EXECUTIONS)).json()["items"] if one["executionId"] != first]
    assert (again["retryOf"], again["params"], again["status"]) == (first, params, "queued")


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("state", ["success", "cancelled", "failed"])
async def test_an_ended_execution_is_run_again_with_its_params(
    api: Api, node: ServerNode, clock: VirtualClock, rules: dict, state: str
):
    await create(api, **rules)
    first = (await submit(api, n=1))["executionId"]
    clock.advance(SECOND)
    await node.work.promoter.step()
    if state == "cancelled":
        await api.post(f"{EXECUTIONS}/{first}/cancel", json={})
    else:
        await (await work(node)).end(state)
    before = (await api.get(f"{EXECUTIONS}/{first}")).json()

    answer = await api.post(f"{EXECUTIONS}/{first}/rerun", json={})
    assert (answer.status_code, answer.json()["executionId"] == first) == (202, False), answer.text
    again = (await api.get(answer.headers["location"])).json()
    assert (before["status"], again["rerunOf"], again["params"]) == (state, first, before["params"])
    assert again["status"] == "queued"
