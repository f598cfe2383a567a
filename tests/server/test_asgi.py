"""The API behaves the same behind our own HTTP layer and under another ASGI server, here uvicorn.

Another server, or a proxy before it, must then enforce the limits of our HTTP layer (docs/decisions/0011-http.md):
heads, trailers and slow clients, connections of one address, repeated headers, Host and target, TLS and certificates of
workers.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

import httpx2
import msgspec
import pytest
import uvicorn

from horae.engine.server_node import ServerNode
from horae.env import SECOND, system_env
from horae.model.fleet.protocol import PROTOCOL, Exchange
from horae.server.app import Application
from horae.server.reading.bodies import LIMIT
from horae.server.run import serve
from tests.waiting import eventually

EXECUTIONS, SESSIONS, STREAM = "/api/v1/executions", "/api/v1/sessions", "/api/v1/stream"


class Served(NamedTuple):
    """A node behind an HTTP server."""

    node: ServerNode
    url: str
    stop: Callable[[], object]


@asynccontextmanager
async def own_door() -> AsyncIterator[Served]:
    node = await ServerNode.open(system_env(), "sqlite://")
    serving = await serve(node, "127.0.0.1", 0)
    stopping: list[asyncio.Task[None]] = []
    yield Served(node, serving.url, lambda: stopping.append(asyncio.ensure_future(serving.stop())))
    await (stopping[0] if stopping else serving.stop())


@asynccontextmanager
async def under_uvicorn() -> AsyncIterator[Served]:
    """Start and stop the node around uvicorn, and answer parked requests before it stops."""
    node = await ServerNode.open(system_env(), "sqlite://")
    await node.start()
    config = uvicorn.Config(Application(node), port=0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    running = asyncio.ensure_future(server.serve())
    await eventually(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]

    async def stop() -> None:
        node.base.events.close()
        await node.gateway.stop()
        server.should_exit = True
        await running

    stopping: list[asyncio.Task[None]] = []
    yield Served(node, f"http://127.0.0.1:{port}", lambda: stopping.append(asyncio.ensure_future(stop())))
    await (stopping[0] if stopping else stop())
    await node.stop()


@pytest.fixture(params=[own_door, under_uvicorn], ids=["own", "uvicorn"])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    door: Callable[[], AbstractAsyncContextManager[Served]] = request.param
    async with door() as served:
        yield served


@pytest.fixture
async def api(served: Served) -> AsyncIterator[httpx2.AsyncClient]:
    key = (await served.node.tenancy.keys.create(1, "all", "admin")).text
    headers = {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(base_url=served.url, headers=headers, timeout=30) as api:
        assert (await api.post("/api/v1/jobs", json={"name": "report", "command": "true"})).status_code == 201
        yield api


async def parked(api: httpx2.AsyncClient, served: Served) -> "asyncio.Future[httpx2.Response]":
    """Register a worker and let its exchange wait for work."""
    session = (await api.post(SESSIONS, json={"protocol": PROTOCOL, "worker": "w"})).json()["sessionId"]
    patient = msgspec.json.encode(Exchange(channel=0, n=1, free=1, wait=20 * SECOND))
    exchange = asyncio.ensure_future(api.post(f"{SESSIONS}/{session}/exchange", content=patient))
    await eventually(lambda: len(served.node.fleet.parking_lot) == 1)
    return exchange


async def test_a_submission_reaches_a_waiting_worker(api: httpx2.AsyncClient, served: Served):
    exchange = await parked(api, served)

    submitted = await api.post(EXECUTIONS, json={"job": "report"}, headers={"idempotency-key": "once"})

    assert submitted.status_code == 201
    answer = await exchange
    assert (answer.status_code, len(answer.json()["slices"])) == (200, 1)
    again = await api.post(EXECUTIONS, json={"job": "report"}, headers={"idempotency-key": "once"})
    assert again.json()["executionId"] == submitted.json()["executionId"]


async def test_many_are_submitted_and_listed(api: httpx2.AsyncClient):
    bulk = await api.post(EXECUTIONS, json={"job": "report", "items": [{}] * 1000})
    assert (bulk.status_code, bulk.json()["accepted"]) == (201, 1000)

    listed = await api.get(EXECUTIONS, params={"job": "report", "limit": 1000})

    assert len(listed.json()["items"]) == 1000
    assert listed.headers["content-encoding"] == "gzip"
    tag = listed.headers["etag"]
    same = await api.get(EXECUTIONS, params={"job": "report", "limit": 1000}, headers={"if-none-match": tag})
    assert (same.status_code, same.content) == (304, b"")


async def test_events_are_streamed_as_they_happen(api: httpx2.AsyncClient, served: Served):
    async with api.stream("GET", STREAM, params={"topics": "executions"}) as stream:
        chunks = stream.aiter_text()
        assert await anext(chunks) == "retry: 2000\n\n"
        await api.post(EXECUTIONS, json={"job": "report"})
        assert "event: execution" in await anext(chunks)


async def test_the_page_of_the_ui_is_served(served: Served):
    async with httpx2.AsyncClient(base_url=served.url) as nobody:
        page = await nobody.get("/")
        assert page.status_code == 200
        assert "<!doctype html>" in page.text.lower()
        assert page.headers["content-security-policy"].startswith("default-src 'self'")
        head = await nobody.head("/")
        assert (head.status_code, head.content) == (200, b"")


async def test_a_request_without_a_credential_is_refused(served: Served):
    async with httpx2.AsyncClient(base_url=served.url) as nobody:
        answer = await nobody.get("/api/v1/jobs", headers={"x-request-id": "mine"})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["requestId"] == answer.headers["x-request-id"] == "mine"


@pytest.mark.parametrize("length", ["told", "chunked"])
async def test_a_body_that_is_too_large_is_refused(api: httpx2.AsyncClient, length: str):
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * LIMIT

    answer = await api.post("/api/v1/jobs", content=b" " * 3 * LIMIT if length == "told" else pieces())
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:horae:too-large")


async def test_stopping_answers_parked_workers_and_ends_streams(api: httpx2.AsyncClient, served: Served):
    exchange = await parked(api, served)
    stream = asyncio.ensure_future(api.get(STREAM))
    await eventually(lambda: bool(served.node.base.events.wanted))

    served.stop()

    assert (await asyncio.wait_for(exchange, 10)).status_code == 200
    assert (await asyncio.wait_for(stream, 10)).text == "retry: 2000\n\n"
