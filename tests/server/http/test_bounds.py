"""The cost of one connection for a server that has not seen a credential: bytes, requests and time."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from horae.env import system_env
from horae.server.dispatch import BODIED
from horae.server.http.connection import AT_ONCE, MOST_AFTER, MOST_HELD, MOST_QUEUED, PATIENCE
from horae.server.http.listener import HttpListener
from horae.server.reading.bodies import LIMIT, SMALL_LIMIT
from horae.server.routes.table import ROUTES
from tests.server.http.test_connection import Answers, Client, answer_of, ask, bound, get, is_closed
from tests.waiting import eventually

CHUNKED = b"GET /refuses HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
PIECE = 65536
FLOOD = 24 * MOST_AFTER

Talk = Callable[[Client, Answers, HttpListener], Awaitable[None]]


@pytest.fixture
def answers() -> Answers:
    return Answers()


async def talk(answers: Answers, then: Talk) -> None:
    listener = HttpListener(system_env(), answers.answer)
    try:
        async with bound(listener) as connect:
            await then(await connect(), answers, listener)
    finally:
        await listener.stop(0.1)


@pytest.mark.parametrize(
    ("begun", "more"),
    [
        (CHUNKED + b"0\r\nx: ", b"a" * PIECE),
        (CHUNKED + b"0\r\n", b"x: y\r\n" * (PIECE // 6)),
        (CHUNKED + b"1;", b"a" * PIECE),
        (CHUNKED + b"1;a=", b'"' + b"\t " * (PIECE // 2)),
        (CHUNKED, (b"1;" + b"a" * 200 + b"\r\nx\r\n") * (PIECE // 207)),
        (CHUNKED + b"0" * 17, b"0" * PIECE),
        (CHUNKED, b"1\r\nx\r\n" * (PIECE // 6)),
        (CHUNKED, b"ffff\r\n" + b"x" * 65535 + b"\r\n"),
        (b"", b"\r\n" * (PIECE // 2)),
        (get("/refuses"), b"\r\n" * (PIECE // 2)),
        (b"GET /refuses HTTP/1.1\r\n", b"x: y\r\n" * (PIECE // 6)),
        (b"GET /", b"y" * PIECE),
        (b"G", b"E" * PIECE),
    ],
    ids=[
        "a-trailer", "trailers", "extension", "quoted-extension", "extensions", "digits", "small-chunks", "chunks",
        "empty-lines", "empty-lines-after-a-request", "headers", "target", "method",
    ],
)  # fmt: skip
async def test_bytes_without_an_end_end_the_connection(answers: Answers, begun: bytes, more: bytes):
    async def pour(client: Client, _: Answers, __: HttpListener) -> None:
        client[1].write(begun)
        for _ in range(FLOOD // len(more)):
            client[1].write(more)
            await client[1].drain()

    with pytest.raises(ConnectionError):
        await talk(answers, pour)


async def test_small_chunks_after_an_answer_end_the_connection_soon(answers: Answers):
    async def pour(client: Client, _: Answers, listener: HttpListener) -> None:
        client[1].write(CHUNKED)
        assert (await answer_of(client[0]))[0] == 401
        (connection,) = listener._connections
        client[1].write(b"1\r\nx\r\n" * (MOST_AFTER // 50))
        await eventually(lambda: connection._ended)
        assert await is_closed(client)

    await talk(answers, pour)


@pytest.mark.parametrize("apart", [False, True])
async def test_trailers_are_dropped(answers: Answers, apart: bool):
    async def ask_with_trailers(client: Client, answers: Answers, _: HttpListener) -> None:
        client[1].write(b"POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
        if apart:
            await eventually(lambda: answers.read == 2)
        trailers = b"Authorization: Bearer x\r\nX-Forwarded-For: 203.0.113.1\r\nHorae-Namespace: other\r\n"
        assert (await ask(client, b"0\r\n" + trailers + b"\r\n"))[2] == b"hi"
        assert answers.scopes[0]["headers"] == [(b"host", b"h"), (b"transfer-encoding", b"chunked")]
        assert (await ask(client, get("/a")))[2] == b"/a"

    await talk(answers, ask_with_trailers)


async def test_requests_sent_ahead_are_read_only_as_far_as_there_is_room(answers: Answers):
    async def send_ahead(client: Client, answers: Answers, listener: HttpListener) -> None:
        client[1].write(get("/waits") * 4000)
        await eventually(lambda: len(answers.scopes) == 1)
        (connection,) = listener._connections
        await eventually(lambda: not connection._reading)
        assert len(connection._queue) <= MOST_QUEUED
        answers.gate.set()
        for _ in range(4000):
            assert (await answer_of(client[0]))[2] == b"/waits"

    await talk(answers, send_ahead)


@pytest.mark.parametrize("large", ["bodies", "heads"])
async def test_requests_sent_ahead_hold_few_bytes_however_large_they_are(answers: Answers, large: str):
    def request(number: int) -> bytes:
        if large == "heads":
            return b"GET /a HTTP/1.1\r\nHost: h\r\nX-Number: %d\r\nX: %b\r\n\r\n" % (number, b"y" * 60_000)
        return b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000

    async def send_ahead(client: Client, answers: Answers, listener: HttpListener) -> None:
        client[1].write(get("/waits") + b"".join(map(request, range(15))))
        await eventually(lambda: len(answers.scopes) == 1)
        (connection,) = listener._connections
        await eventually(lambda: not connection._reading)
        assert sum(waiting.weight for waiting in connection._queue) <= 2 * MOST_HELD
        answers.gate.set()
        for _ in range(16):
            assert (await answer_of(client[0]))[0] == 200

    await talk(answers, send_ahead)


@pytest.mark.parametrize(
    "refused",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: h\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nx",
    ],
)
async def test_bytes_that_drip_after_the_last_answer_do_not_hold_the_connection(answers: Answers, refused: bytes):
    async def drip(client: Client, _: Answers, listener: HttpListener) -> None:
        assert (await ask(client, refused))[0] in (200, 400)
        (connection,) = listener._connections
        begun = listener.now
        for number in range(1, 4):
            listener.now = begun + number * PATIENCE / 2
            client[1].write(b"x")
            await eventually(lambda: connection.heard_at == listener.now)
        assert connection.is_late(listener.now)

    await talk(answers, drip)


async def test_a_head_in_one_read_is_bounded_too(answers: Answers):
    async def send(client: Client, answers: Answers, _: HttpListener) -> None:
        head = b"GET /a HTTP/1.1\r\nHost: h\r\n" + b"X: %b\r\n" % (b"y" * 7000) * 10 + b"\r\n"
        assert len(head) > 70_000
        assert (await ask(client, head))[0] == 431
        assert await is_closed(client)
        assert answers.scopes == []

    await talk(answers, send)


async def test_a_request_after_a_long_body_is_answered_however_they_are_read(answers: Answers):
    async def send(client: Client, answers: Answers, _: HttpListener) -> None:
        for size in range(60_000, 260_000, 5_000):
            client[1].write(b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (size, b"x" * size))
            client[1].write(b"GET /a HTTP/1.1\r\nHo")
            assert len((await answer_of(client[0]))[2]) == size
            assert (await ask(client, b"st: h\r\n\r\n"))[2] == b"/a"

    await talk(answers, send)


async def test_a_request_that_says_close_is_the_last_one(answers: Answers):
    async def send(client: Client, answers: Answers, _: HttpListener) -> None:
        client[1].write(b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" + get("/b") * 100)
        assert (await answer_of(client[0]))[2] == b"/a"
        assert await is_closed(client)
        assert [scope["path"] for scope in answers.scopes] == ["/a"]

    await talk(answers, send)


async def test_a_body_that_waits_for_100_continue_is_not_read_as_the_next_request(answers: Answers):
    async def send(client: Client, answers: Answers, _: HttpListener) -> None:
        head = b"POST /refuses HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\nExpect: 100-continue\r\n\r\n"
        status, headers, _ = await ask(client, head)
        assert (status, headers["connection"]) == (401, "close")
        client[1].write(get("/smuggled"))
        assert await is_closed(client)
        assert [scope["path"] for scope in answers.scopes] == ["/refuses"]

    await talk(answers, send)


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"TLS/1.2"])
async def test_an_offer_to_upgrade_is_ignored_and_the_body_read(answers: Answers, protocol: bytes):
    async def offer(client: Client, answers: Answers, _: HttpListener) -> None:
        head = b"POST /p HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: %b\r\n" % protocol
        assert (await ask(client, head + b"HTTP2-Settings: AAMAAABk\r\nContent-Length: 5\r\n\r\n12345"))[2] == b"12345"
        chunked = b"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n"
        assert (await ask(client, head + chunked))[2] == b"12345"
        assert (await ask(client, get("/a")))[2] == b"/a"

    await talk(answers, offer)


@pytest.mark.parametrize(
    "line",
    [
        b"GET http://a:99999999/", b"GET http://[::1/", b"GET http:///x", b"GET http://other/", b"GET http://u@h/",
        b"GET a", b"GET *", b"GET ftp://h/", b"GET h:80", b"CONNECT a:80", b"CONNECT http://h/", b"GET /a#b",
        b"GET /\xc3\xbc", b"GET //h/ /b", b"GET \t/a", b"CONNECT " + b"a" * 60_000,
    ],
)  # fmt: skip
async def test_a_target_that_is_not_a_path_of_this_server_is_a_bad_request(answers: Answers, line: bytes):
    async def send(client: Client, answers: Answers, _: HttpListener) -> None:
        assert (await ask(client, line + b" HTTP/1.1\r\nHost: h\r\n\r\n"))[0] == 400
        assert await is_closed(client)
        assert answers.scopes == []

    await talk(answers, send)


async def test_a_target_may_name_the_same_server_as_host(answers: Answers):
    async def send(client: Client, answers: Answers, _: HttpListener) -> None:
        for target, path in ((b"http://H:80/a?b", "/a"), (b"https://h:80", "/"), (b"HTTP://h:80?x=1", "/")):
            assert (await ask(client, b"GET %b HTTP/1.1\r\nHost: h:80\r\n\r\n" % target))[0] == 200
            assert answers.scopes[-1]["path"] == path
        assert answers.scopes[-1]["query_string"] == b"x=1"

    await talk(answers, send)


async def test_a_client_is_not_blamed_while_the_server_does_not_read(answers: Answers):
    async def send(client: Client, answers: Answers, listener: HttpListener) -> None:
        client[1].write(b"POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 999_999)
        await eventually(lambda: answers.read > 0)
        (connection,) = listener._connections
        await eventually(lambda: not connection._reading)
        listener.now += 10_000
        assert not connection.is_late(listener.now)
        answers.gate.set()
        await eventually(lambda: answers.read == 999_999)
        assert not connection.is_late(listener.now)
        client[1].write(b"x")
        assert (await answer_of(client[0]))[0] == 200

    await talk(answers, send)


async def test_many_small_chunks_let_others_have_their_turn(answers: Answers):
    listener = HttpListener(system_env(), answers.answer)
    async with bound(listener) as connect:
        busy, size = await connect(), 200_000
        busy[1].write(b"POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        busy[1].write(b"1\r\nx\r\n" * size + b"0\r\n\r\n")
        answer = asyncio.ensure_future(answer_of(busy[0]))
        await eventually(lambda: answers.read > 0)
        (connection,) = listener._connections
        read = [answers.read]
        while not answer.done():
            assert connection._coming.size <= 4 * AT_ONCE
            await asyncio.sleep(0)
            read.append(answers.read)
        assert max(b - a for a, b in pairwise(read)) <= 4 * AT_ONCE, "a turn takes few of them"
        assert len((await answer)[2]) == size
    await listener.stop(0.1)


async def test_a_flood_of_trailers_does_not_delay_other_clients(answers: Answers):
    listener = HttpListener(system_env(), answers.answer)
    async with bound(listener) as connect:
        hostile, other = await connect(), await connect()
        hostile[1].write(CHUNKED + b"0\r\nx: ")
        assert (await answer_of(hostile[0]))[0] == 401
        hostile[1].write(b"a" * PIECE)
        assert (await asyncio.wait_for(ask(other, get("/a")), 30))[2] == b"/a"
        assert await is_closed(hostile)
    await listener.stop(0.1)


def test_public_routes_accept_small_bodies_only():
    limits = {route.name: route.limit for route in ROUTES if route.is_public and route.method in BODIED}
    assert {"me.sign-in", "me.sign-in-with-password", "enrolments.redeem"} <= limits.keys()
    unknown = limits.keys() - {"hooks.receive", "callbacks.receive"}  # a token in their path is the credential
    assert {limits[name] for name in unknown} == {SMALL_LIMIT}
    assert max(limits.values()) < LIMIT
