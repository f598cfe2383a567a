"""Listening on a real socket: addresses, permissions, and stopping."""

import asyncio
import platform
import socket
from collections.abc import AsyncIterator

import httpx2
import msgspec
import pytest

from horae.engine.server_node import ServerNode
from horae.env import SECOND, system_env
from horae.errors import BadInput
from horae.model.fleet.protocol import PROTOCOL, Exchange
from horae.server.app import has_route
from horae.server.routes.table import ROUTES
from horae.server.run import Serving, check_bind, serve
from tests.waiting import eventually


@pytest.fixture
async def node() -> ServerNode:
    return await ServerNode.open(system_env(), "sqlite://")


@pytest.fixture
async def serving(node: ServerNode) -> AsyncIterator[Serving]:
    serving = await serve(node, "127.0.0.1", 0)
    yield serving
    await serving.stop()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_loopback_needs_no_permission(host: str):
    check_bind(host, allow_remote=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "192.168.1.10", "example.com"])
def test_other_machines_are_admitted_only_if_allowed(host: str):
    with pytest.raises(BadInput) as refused:
        check_bind(host, allow_remote=False)
    assert refused.value.fields["field"] == "host"
    check_bind(host, allow_remote=True)


async def test_it_takes_a_free_port_and_answers(serving: Serving, node: ServerNode):
    assert serving.url == f"http://127.0.0.1:{serving.port}" == node.fleet.presence.url
    async with httpx2.AsyncClient(base_url=serving.url) as client:
        answer = await client.get("/healthz")
        assert answer.json()["status"] == "ok"
        assert "server" not in answer.headers
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/api/v1/jobs")).status_code == 401


async def test_answers_do_not_wait_for_acknowledgements(serving: Serving, monkeypatch):
    """asyncio sets TCP_NODELAY only on sockets that are explicitly TCP."""
    set_for = []
    monkeypatch.setattr("asyncio.base_events._set_nodelay", lambda sock: set_for.append(sock.proto))
    async with httpx2.AsyncClient(base_url=serving.url) as client:
        await client.get("/healthz")
    assert set(set_for) == {socket.IPPROTO_TCP}


async def test_a_taken_port_is_refused_with_a_remedy(serving: Serving):
    with pytest.raises(BadInput) as refused:
        await serve(await ServerNode.open(system_env(), "sqlite://"), "127.0.0.1", serving.port)
    assert "--port" in refused.value.remedy


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid"])
async def test_an_address_of_another_machine_is_refused_for_its_host(host: str, node: ServerNode):
    with pytest.raises(BadInput) as refused:
        await serve(node, host, 0, allow_remote=True)
    await node.store.driver.close()
    assert refused.value.fields["field"] == "host"
    assert "--host" in refused.value.remedy
    assert "--port" not in refused.value.remedy


async def test_a_server_on_all_addresses_is_reached_by_this_machines(node: ServerNode):
    serving = await serve(node, "0.0.0.0", 0, allow_remote=True)
    try:
        assert serving.url == f"http://127.0.0.1:{serving.port}"
        assert serving.remote == node.fleet.presence.url == f"http://{platform.node()}:{serving.port}"
        async with httpx2.AsyncClient(base_url=serving.url) as client:
            assert (await client.get("/healthz")).status_code == 200
    finally:
        await serving.stop()


async def test_stopping_answers_a_long_poll_at_once_and_ends_streams(node: ServerNode):
    serving = await serve(node, "127.0.0.1", 0)
    key = (await node.tenancy.keys.create(1, "all", "admin")).text
    headers = {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(base_url=serving.url, headers=headers, timeout=30) as client:
        body = {"protocol": PROTOCOL, "worker": "w"}
        session = (await client.post("/api/v1/sessions", json=body)).json()["sessionId"]
        patient = msgspec.json.encode(Exchange(channel=0, n=1, free=1, wait=20 * SECOND))
        poll = asyncio.ensure_future(client.post(f"/api/v1/sessions/{session}/exchange", content=patient))
        stream = asyncio.ensure_future(client.get("/api/v1/stream"))
        await eventually(lambda: len(node.fleet.parking_lot) == 1 and node.base.events.wanted)

        await asyncio.wait_for(serving.stop(), 15)

        assert (await poll).status_code == 200
        assert (await stream).text == "retry: 2000\n\n"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", serving.port))


async def test_an_endless_body_ends_with_its_connection(serving: Serving, node: ServerNode):
    key = (await node.tenancy.keys.create(1, "all", "admin")).text
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
    head = f"POST /api/v1/keys HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head.encode())
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"

    async def pour() -> None:
        try:
            while True:
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            pass

    pouring = asyncio.ensure_future(pour())
    answer = await reader.readuntil(b"\r\n\r\n")
    await pouring

    assert answer.startswith(b"HTTP/1.1 413")
    writer.close()


def paths(parts: set[str]) -> set[str]:
    return {route.path.split("/")[3] for route in ROUTES if has_route(parts, route) and route.path.startswith("/api")}


async def test_a_part_has_its_routes_and_no_others(node: ServerNode):
    assert paths({"gateway"}) == {"sessions"}
    assert paths({"scheduler"}) == set()
    assert {"jobs", "executions"} <= paths({"api"})
    assert "sessions" not in paths({"api"})
    await node.store.driver.close()
