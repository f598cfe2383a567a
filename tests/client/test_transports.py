"""The two transports: one interface, the same answers."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest
import uvicorn

from horae.client.transport.embedded import EmbeddedTransport
from horae.client.transport.http import HttpClientTransport
from horae.client.transport.transport import ApiRequest, Unanswered
from tests.waiting import eventually


async def echo(scope, receive, send):
    """An application that echoes its request; /stream answers in two parts, /fail fails."""
    if scope["type"] != "http":
        raise RuntimeError("only http")
    body = (await receive())["body"]
    if scope["path"] == "/fail":
        raise ValueError("broken")
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    document = {"path": scope["path"], "query": scope["query_string"].decode(), "body": body.decode()}
    document |= {"method": scope["method"], "key": headers.get("idempotency-key")}
    status = {"/missing": 404, "/busy": 503}.get(scope["path"], 200)
    await send({"type": "http.response.start", "status": status, "headers": [(b"X-Told", b"yes")]})
    if scope["path"] == "/stream":
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await send({"type": "http.response.body", "body": b"two", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    await send({"type": "http.response.body", "body": msgspec.json.encode(document)})


@asynccontextmanager
async def over_http(*before: str):
    config = uvicorn.Config(echo, port=0, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await eventually(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    transport = HttpClientTransport([*before, f"http://127.0.0.1:{port}/"])
    yield transport
    await transport.close()
    server.should_exit = True
    await serving


@asynccontextmanager
async def in_process():
    yield EmbeddedTransport(echo)


@pytest.fixture(params=[over_http, in_process])
async def transport(request):
    async with request.param() as made:
        yield made


async def test_a_call_arrives_complete(transport):
    reply = await transport.send(
        ApiRequest(method="POST", path="/a%20b?x=1&y=2", headers={"idempotency-key": "k"}, body=b'{"i": 1}')
    )
    assert reply.status == 200
    assert reply.headers["x-told"] == "yes"
    assert msgspec.json.decode(reply.body) == {
        "path": "/a b",
        "query": "x=1&y=2",
        "body": '{"i": 1}',
        "method": "POST",
        "key": "k",
    }


async def test_a_bad_status_is_an_answer(transport):
    assert (await transport.send(ApiRequest(method="GET", path="/missing"))).status == 404


async def test_a_stream_arrives_while_it_goes_on(transport):
    async with transport.open(ApiRequest(method="GET", path="/stream")) as opened:
        seen = b""
        async for chunk in opened.chunks:
            seen += chunk
            if seen == b"onetwo":
                break
    assert opened.status == 200


async def test_an_application_that_fails_leaves_its_outcome_unknown():
    with pytest.raises(Unanswered) as caught:
        await EmbeddedTransport(echo).send(ApiRequest(method="GET", path="/fail"))
    assert caught.value.sent


async def test_an_answer_without_an_end_is_no_answer():
    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})

    with pytest.raises(Unanswered, match="before the end of its answer"):
        await EmbeddedTransport(application).send(ApiRequest(method="GET", path="/"))


async def test_an_embedded_server_waits_for_a_slow_reader():
    sent = 0

    async def application(scope, receive, send):
        nonlocal sent
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for sent in range(1, 101):
            await send({"type": "http.response.body", "body": b"x", "more_body": sent < 100})

    async with EmbeddedTransport(application).open(ApiRequest(method="GET", path="/")) as opened:
        assert await anext(opened.chunks) == b"x"
        assert sent < 100
        assert [chunk async for chunk in opened.chunks] == [b"x"] * 99


async def test_a_server_that_does_not_listen_received_no_request(unused_port):
    transport = HttpClientTransport([f"http://127.0.0.1:{unused_port}"])
    with pytest.raises(Unanswered) as caught:
        await transport.send(ApiRequest(method="GET", path="/"))
    assert not caught.value.sent
    await transport.close()


async def test_the_next_server_is_tried_after_a_dead_one(unused_port):
    gone = f"http://127.0.0.1:{unused_port}"
    async with over_http(gone) as transport:
        assert transport.place == gone
        with pytest.raises(Unanswered):
            await transport.send(ApiRequest(method="GET", path="/"))
        assert (await transport.send(ApiRequest(method="GET", path="/"))).status == 200


async def test_calls_never_return_to_a_failed_server(unused_port):
    gone = f"http://127.0.0.1:{unused_port}"
    async with over_http(gone) as transport:
        calls = [transport.send(ApiRequest(method="GET", path="/")) for _ in range(4)]
        failed = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in failed] == [Unanswered] * 4
        assert transport.place != gone


@pytest.mark.parametrize(
    ("urls", "method", "headers", "waits"),
    [
        (["http://a", "http://b"], "POST", {"idempotency-key": "k"}, 15),
        (["http://a", "http://b"], "POST", {}, 60),
        (["http://a", "http://b"], "GET", {}, 15),
        (["http://a"], "POST", {"idempotency-key": "k"}, 60),
    ],
)
def test_a_silent_server_among_several_is_left_early(urls, method, headers, waits):
    assert HttpClientTransport(urls)._patience(ApiRequest(method=method, path="/", headers=headers)) == waits


async def test_a_server_that_is_not_ready_is_left():
    async with over_http() as transport:
        transport._urls.append("http://127.0.0.1:1")
        assert (await transport.send(ApiRequest(method="GET", path="/busy"))).status == 503
        assert transport.place == "http://127.0.0.1:1"


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]  # bound but not listening: the port is reserved, and connections are refused
