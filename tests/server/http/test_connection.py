"""HTTP/1.1 on real sockets: the life of a connection, with well-behaved and other clients."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from horae.env import system_env
from horae.server.http import connection as speaking
from horae.server.http import listener as listening
from horae.server.http.connection import MOST_AFTER, MOST_HELD
from horae.server.http.framing import MOST_HEAD
from horae.server.http.listener import HttpListener
from horae.server.reply import Response
from tests.waiting import eventually

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Client]]


class Stream(Response):
    """An answer in parts that ends on request, or with the client."""

    def __init__(self, parts: list[bytes], length: int | None = None) -> None:
        super().__init__()
        self.parts, self.length = parts, length

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        told = [] if self.length is None else [(b"content-length", b"%d" % self.length)]
        await self.start(send, (b"content-type", b"text/plain"), *told)
        for part in self.parts:
            if part == b"fails":
                raise RuntimeError("no")
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class Answers:
    """A small application that stores its requests."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []
        self.gate = asyncio.Event()
        self.gone = 0
        self.read = 0

    async def answer(self, scope: dict[str, Any], receive: Any) -> Response:
        self.scopes.append(scope)
        path = scope["path"]
        if path == "/fails":
            raise RuntimeError("no")
        if path == "/waits":
            await self.gate.wait()
        return READY[path]() if path in READY else await self._echo(scope, receive)

    async def _echo(self, scope: dict[str, Any], receive: Any) -> Response:
        body, more = b"", scope["method"] == "POST"
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone += 1
                return Response(499)
            self.read += len(message["body"])
            body += message["body"]
            more = message["more_body"]
            if scope["path"] == "/slow":
                await self.gate.wait()
        if scope["path"] == "/leaves":
            assert (await receive())["type"] == "http.disconnect"
            self.gone += 1
        return Response(200, body or scope["path"].encode(), b"text/plain")


READY: dict[str, Callable[[], Response]] = {
    "/refuses": lambda: Response(401, b"no", b"text/plain"),
    "/nothing": lambda: Response(204),
    "/stream": lambda: Stream([b"a", b"bc"]),
    "/breaks": lambda: Stream([b"a", b"fails"]),
    "/measured": lambda: Stream([b"ab", b"c"], 3),
    "/short": lambda: Stream([b"ab", b"c"], 5),
    "/flood": lambda: Stream([b"x" * 65536] * 400),
}


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
async def listener(answers: Answers) -> AsyncIterator[HttpListener]:
    made = HttpListener(system_env(), answers.answer)
    yield made
    await made.stop(0.1)


@asynccontextmanager
async def bound(listener: HttpListener) -> AsyncIterator[Connect]:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await listener.start(sock)
    writers: list[asyncio.StreamWriter] = []

    async def connect() -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
        writers.append(writer)
        return reader, writer

    yield connect
    for writer in writers:
        writer.close()


@pytest.fixture
async def connect(listener: HttpListener) -> AsyncIterator[Connect]:
    async with bound(listener) as connect:
        yield connect


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Read one answer with a length, or in chunks."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)).decode()
    lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(lines[0].split()[1]), headers, body


async def ask(client: Client, request: bytes) -> tuple[int, dict[str, str], bytes]:
    client[1].write(request)
    return await answer_of(client[0])


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode()


async def is_closed(client: Client) -> bool:
    try:
        return await asyncio.wait_for(client[0].read(1), 30) == b""
    except ConnectionError:
        return True


async def test_a_connection_serves_one_request_after_another(connect: Connect, answers: Answers):
    client = await connect()
    for path in ("/a", "/b%20c?x=1&y=%20"):
        status, headers, body = await ask(client, f"GET {path} HTTP/1.1\r\nHost: h\r\nX-Y: Z\r\n\r\n".encode())
        assert status == 200
        assert "connection" not in headers
        assert headers["date"].endswith("GMT")
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
    assert body == b"/b c"
    assert answers.scopes[1]["query_string"] == b"x=1&y=%20"
    assert answers.scopes[1]["headers"] == [(b"host", b"h"), (b"x-y", b"Z")]


async def test_requests_sent_ahead_are_answered_in_their_order(connect: Connect, answers: Answers):
    client = await connect()
    client[1].write(b"".join(get(path) for path in ("/waits", *(f"/{n}" for n in range(40)))))
    await eventually(lambda: len(answers.scopes) == 1)
    answers.gate.set()
    found = [(await answer_of(client[0]))[2] for _ in range(41)]
    assert found == [b"/waits", *(b"/%d" % n for n in range(40))]


@pytest.mark.parametrize("size", [0, 1, 1000, 3 * MOST_HELD])
async def test_bodies_arrive_whole_in_any_pieces(connect: Connect, size: int):
    client = await connect()
    body = bytes(i % 251 for i in range(size))
    whole = b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (size, body)
    assert (await ask(client, whole))[2] == (body or b"/p")
    client[1].write(b"POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
    for at in range(0, size, 70_000):
        part = body[at : at + 70_000]
        client[1].write(b"%x\r\n%b\r\n" % (len(part), part))
        await client[1].drain()
    assert (await ask(client, b"0\r\n\r\n"))[2] == (body or b"/p")


async def test_a_request_may_come_byte_by_byte(connect: Connect):
    client = await connect()
    for byte in b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi":
        client[1].write(bytes([byte]))
        await client[1].drain()
    assert (await answer_of(client[0]))[2] == b"hi"


async def test_a_body_that_its_handler_does_not_read_takes_little_memory(connect: Connect, answers: Answers):
    client = await connect()
    size = 40 * MOST_HELD
    client[1].write(b"POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size)
    pouring = asyncio.ensure_future(_pour(client[1], size))
    await eventually(lambda: answers.read > 0)
    for _ in range(50):
        await asyncio.sleep(0)
    assert not pouring.done()
    assert answers.read <= 4 * MOST_HELD
    answers.gate.set()
    assert (await answer_of(client[0]))[0] == 200
    await pouring
    assert answers.read == size


async def _pour(writer: asyncio.StreamWriter, size: int) -> None:
    while size > 0:
        writer.write(bytes(min(size, 65536)))
        size -= 65536
        await writer.drain()


async def test_a_client_that_expects_100_continue_gets_it(connect: Connect):
    client = await connect()
    client[1].write(b"POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert await client[0].readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert (await ask(client, b"hi"))[2] == b"hi"


async def test_a_refusal_before_the_body_keeps_the_connection(connect: Connect):
    client = await connect()
    assert (await ask(client, b"POST /refuses HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"))[0] == 401
    assert (await ask(client, b"12345GET /next HTTP/1.1\r\nHost: h\r\n\r\n"))[2] == b"/next"


async def test_a_body_that_does_not_end_after_its_answer_ends_the_connection(connect: Connect):
    client = await connect()
    assert (await ask(client, b"POST /refuses HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999\r\n\r\n"))[0] == 401
    with pytest.raises(ConnectionError):
        await _pour(client[1], 64 * MOST_AFTER)


@pytest.mark.parametrize(
    "request_text",
    [
        b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        b"GET /a HTTP/1.0\r\n\r\n",
        b"GET /fails HTTP/1.1\r\nHost: h\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: h\r\nX: " + b"y" * (2 * MOST_HEAD) + b"\r\n\r\n",
        b"GET /" + b"y" * (2 * MOST_HEAD) + b" HTTP/1.1\r\nHost: h\r\n\r\n",
    ],
)
async def test_the_last_request_of_a_connection_is_answered(connect: Connect, request_text: bytes):
    client = await connect()
    status, headers, _ = await ask(client, request_text)
    assert status in (200, 400, 431, 500)
    assert headers["connection"] == "close"
    assert await is_closed(client)


async def test_clients_of_http_1_0_may_keep_the_connection(connect: Connect):
    client = await connect()
    for _ in range(2):
        status, headers, _ = await ask(client, b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert (status, headers["connection"]) == (200, "keep-alive")


async def test_an_answer_to_head_has_no_body(connect: Connect):
    client = await connect()
    client[1].write(b"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n")
    assert b"content-length: 2" in await client[0].readuntil(b"\r\n\r\n")
    assert (await ask(client, b"GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n"))[0] == 204
    assert (await ask(client, b"GET http://other.test/a?b HTTP/1.1\r\nHost: other.test\r\n\r\n"))[2] == b"/a"


async def test_a_stream_arrives_in_parts_and_the_connection_stays_open(connect: Connect):
    client = await connect()
    assert (await ask(client, b"GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"))[2] == b"abc"
    assert (await ask(client, b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"))[2] == b"/a"


async def test_an_answer_has_one_length(connect: Connect):
    client = await connect()
    _, headers, body = await ask(client, get("/measured"))
    assert (headers["content-length"], body) == ("3", b"abc")
    assert "transfer-encoding" not in headers
    assert (await ask(client, get("/a")))[2] == b"/a"


@pytest.mark.parametrize("path", ["/stream", "/measured"])
async def test_an_answer_to_head_of_a_stream_has_no_body(connect: Connect, path: str):
    client = await connect()
    client[1].write(f"HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    assert (await client[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    assert (await ask(client, get("/a")))[2] == b"/a"


@pytest.mark.parametrize("path", ["/breaks", "/short"])
async def test_a_stream_that_breaks_is_cut_off(connect: Connect, path: str):
    client = await connect()
    client[1].write(get(path))
    said = b""
    with suppress(ConnectionError):
        while part := await asyncio.wait_for(client[0].read(65536), 10):
            said += part
    assert said.count(b"HTTP/1.1") == 1
    assert not said.endswith(b"0\r\n\r\n"), "it is not whole"
    assert path != "/short" or (b"content-length: 5\r\n" in said and said.endswith(b"\r\n\r\nabc"))


@pytest.mark.parametrize("value", [b"a\nb", b"a\rb", b"a\r\nb"])
async def test_a_header_of_an_answer_is_one_line(connect: Connect, value: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(READY, "/a", lambda: Response(200, headers=((b"x", value),)))
    client = await connect()
    status, headers, _ = await ask(client, get("/a"))
    assert (status, "x" in headers) == (500, False)


async def test_requests_before_malformed_bytes_are_answered(connect: Connect, answers: Answers):
    client = await connect()
    client[1].write(b"GET /waits HTTP/1.1\r\nHost: h\r\n\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\nnonsense\r\n\r\n")
    await eventually(lambda: len(answers.scopes) == 1)
    answers.gate.set()
    assert [(await answer_of(client[0]))[2] for _ in range(2)] == [b"/waits", b"/a"]
    assert await is_closed(client)


async def test_malformed_chunks_are_refused_and_end_the_connection(connect: Connect, answers: Answers):
    client = await connect()
    client[1].write(b"POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
    await eventually(lambda: len(answers.scopes) == 1)
    client[1].write(b"nonsense\r\n")
    status, headers, _ = await answer_of(client[0])
    assert (status, headers["connection"]) == (400, "close")
    assert await is_closed(client)


async def test_a_stream_for_an_old_client_ends_with_the_connection(connect: Connect):
    client = await connect()
    client[1].write(b"GET /stream HTTP/1.0\r\n\r\n")
    whole = await asyncio.wait_for(client[0].read(), 30)
    assert whole.endswith(b"\r\n\r\nabc")


async def test_a_stream_waits_for_a_slow_reader(connect: Connect, answers: Answers):
    client = await connect()
    _, _, body = await ask(client, b"GET /flood HTTP/1.1\r\nHost: h\r\n\r\n")
    assert len(body) == 400 * 65536


async def test_a_client_that_leaves_is_noticed(connect: Connect, answers: Answers):
    for request in (
        b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n12",
        b"POST /leaves HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n12",
    ):
        client = await connect()
        client[1].write(request)
        await eventually(lambda: len(answers.scopes) > answers.gone)
        client[1].transport.abort()
        expected = answers.gone + 1
        await eventually(lambda expected=expected: answers.gone == expected)


async def test_stopping_answers_unfinished_requests_and_closes_idle_connections(answers: Answers):
    listener = HttpListener(system_env(), answers.answer)
    async with bound(listener) as connect:
        idle, busy = await connect(), await connect()
        await ask(idle, b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
        busy[1].write(b"GET /waits HTTP/1.1\r\nHost: h\r\n\r\n")
        await eventually(lambda: len(answers.scopes) == 2)
        stopping = asyncio.ensure_future(listener.stop(90))
        assert await is_closed(idle)
        assert not stopping.done()
        answers.gate.set()
        status, headers, _ = await answer_of(busy[0])
        assert (status, headers["connection"]) == (200, "close")
        await asyncio.wait_for(stopping, 30)


async def test_a_request_that_outlasts_the_grace_is_cut_off(answers: Answers):
    listener = HttpListener(system_env(), answers.answer)
    async with bound(listener) as connect:
        busy = await connect()
        busy[1].write(b"GET /waits HTTP/1.1\r\nHost: h\r\n\r\n")
        await eventually(lambda: len(answers.scopes) == 1)
        await listener.stop(0.05)
        assert await is_closed(busy)


async def test_silent_connections_are_ended(answers: Answers, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listening, "TICK", 0.01)
    monkeypatch.setattr(listening, "KEEP_ALIVE", 0.05)
    monkeypatch.setattr(speaking, "PATIENCE", 0.05)
    listener = HttpListener(system_env(), answers.answer)
    async with bound(listener) as connect:
        idle, half, waiting = await connect(), await connect(), await connect()
        await ask(idle, b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
        half[1].write(b"GET /a HTTP/1.1\r\nHost: h\r\nX: ")
        waiting[1].write(b"GET /waits HTTP/1.1\r\nHost: h\r\n\r\n")
        assert await is_closed(idle)
        assert await is_closed(half)
        answers.gate.set()
        assert (await answer_of(waiting[0]))[0] == 200, "who waits for an answer is not silent"
    await listener.stop(1)
