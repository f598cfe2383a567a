"""A tenant that sends as much as it can does not delay the others."""

import asyncio
from collections.abc import Callable

import httpx2
import pytest

from horae.engine.server_node import ServerNode
from horae.engine.settings import EngineSettings
from horae.env import SECOND, VirtualClock
from horae.model.admission.rate import Rate
from horae.server.app import Application
from horae.server.routes.system.stream import StreamQuery, filter_of
from horae.server.streaming.event_feeds import StreamFilter
from tests.security.people import Api, both
from tests.security.tenants import Tenant, found

JOBS = "/api/v1/jobs"
EXECUTIONS = "/api/v1/executions"
FLOOD = 200


@pytest.fixture
def engine_settings() -> EngineSettings:
    return EngineSettings(
        namespace_request_rate=Rate(300, SECOND, 300), namespace_submit_rate=Rate(50, SECOND, 50), namespace_streams=2
    )


@pytest.fixture
async def tenants(node: ServerNode, connect: Callable[..., Api]) -> tuple[Tenant, Tenant]:
    made = await found(node, connect, "alpha"), await found(node, connect, "beta")
    for tenant in made:
        answer = await tenant.api.post(JOBS, json={"name": "job", "command": ["true"]})
        assert answer.status_code == 201, answer.text
    return made


@both
async def test_a_flood_of_requests_shares_the_server_with_others(tenants):
    alpha, beta = tenants
    assert (await beta.api.get(JOBS)).status_code == 200
    flood = [asyncio.create_task(alpha.api.get(JOBS)) for _ in range(FLOOD)]

    answer = await asyncio.create_task(beta.api.get(JOBS))
    before = sum(task.done() for task in flood)

    assert answer.status_code == 200
    assert before < FLOOD // 4
    assert {(await task).status_code for task in flood} == {200}


@both
async def test_a_flood_of_submissions_is_refused_only_while_others_submit(tenants, clock: VirtualClock):
    alpha, beta = tenants
    many = {"job": "job", "items": [{"n": n} for n in range(200)]}
    clock.advance(10 * SECOND)
    statuses = [(await alpha.api.post(EXECUTIONS, json=many)).status_code for _ in range(3)]
    assert statuses == [201, 201, 201]

    assert (await beta.api.get(JOBS)).status_code == 200
    assert (await alpha.api.post(EXECUTIONS, json=many)).status_code == 201
    refused = await alpha.api.post(EXECUTIONS, json=many)

    assert refused.status_code == 429
    assert refused.json()["type"] == "urn:horae:over-quota"
    assert refused.headers["retry-after"] == "4"
    assert (await beta.api.post(f"{JOBS}/job/trigger", json={})).status_code == 202
    events = {"events": [{"name": "e", "payload": n} for n in range(10)]}
    assert (await alpha.api.post("/api/v1/events", json=events)).status_code == 429


@both
async def test_a_quota_of_its_own_replaces_the_default(node: ServerNode, api: Api, tenants):
    alpha, beta = tenants
    quota = {"submissionsPerSecond": 1000}
    assert (await api.put("/api/v1/namespaces/alpha/quota", json=quota)).status_code == 200
    many = {"job": "job", "items": [{"n": n} for n in range(200)]}
    assert (await beta.api.get(JOBS)).status_code == 200

    statuses = [(await alpha.api.post(EXECUTIONS, json=many)).status_code for _ in range(3)]

    assert statuses == [201, 201, 201]


async def test_requests_have_a_rate_while_others_send_requests(tenants, clock: VirtualClock):
    alpha, beta = tenants
    clock.advance(10 * SECOND)
    assert {(await alpha.api.get("/api/v1/me")).status_code for _ in range(400)} == {200}
    assert (await beta.api.get(JOBS)).status_code == 200

    statuses = [(await alpha.api.get("/api/v1/me")).status_code for _ in range(301)]

    assert statuses == [200] * 300 + [429]
    assert (await beta.api.get(JOBS)).status_code == 200


async def test_streams_of_a_namespace_are_bounded(node: ServerNode, tenants):
    alpha, beta = tenants
    app = Application(node)
    with (
        app.streams.follow(alpha.id, StreamFilter(frozenset({"job"}))),
        app.streams.follow(alpha.id, StreamFilter(frozenset())),
    ):
        headers = {"authorization": alpha.api.headers["authorization"]}
        async with Api(
            transport=httpx2.ASGITransport(app=app), base_url="http://horae.test", headers=headers
        ) as client:
            refused = await client.get("/api/v1/stream")
        app.streams.refuse_more(beta.id)

    assert refused.status_code == 429
    assert "namespace_streams" in refused.json()["remedy"]
    app.streams.refuse_more(alpha.id)


def test_streams_with_similar_intervals_share_their_updates():
    assert filter_of(StreamQuery(every="3s")) == filter_of(StreamQuery(every="2s"))
    assert len({filter_of(StreamQuery(every=f"{ms}ms")) for ms in range(100, 60_000, 37)}) <= 10
