"""The load generator, against a scripted server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import repeat

import pytest

from bench.kit.wire import build, connected
from horae.env import system_env
from horae.errors import HoraeError

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Answer = Callable[[bytes], bytes]


class Server(asyncio.Protocol):
    """Read requests without bodies and answer each in two pieces; an empty answer closes the connection."""

    def __init__(self, answer: Answer, transports: list[asyncio.Transport]) -> None:
        self._answer, self._transports = answer, transports

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._transports.append(transport)

    def data_received(self, data: bytes) -> None:
        text = self._answer(data)
        if not text:
            self._transport.close()
            return
        self._transport.write(text[:10])
        asyncio.get_running_loop().call_soon(self._transport.write, text[10:])


@asynccontextmanager
async def served(answer: Answer) -> AsyncIterator[str]:
    transports: list[asyncio.Transport] = []
    loop = asyncio.get_running_loop()
    async with await loop.create_server(lambda: Server(answer, transports), "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for transport in transports:
            transport.abort()
        await asyncio.sleep(0)


async def test_all_requests_are_answered_over_kept_connections():
    heads: list[bytes] = []

    def answer(head: bytes) -> bytes:
        heads.append(head)
        return OK

    async with served(answer) as url, connected(url, 3) as clients:
        assert await clients.ask(build(url, "key", "GET", "/a")) == b"ok"
        took = await clients.send_all(repeat(build(url, "key", "GET", "/b"), 20))

    assert len(took) == 20
    assert len(heads) == 21
    assert heads[0].startswith(b"GET /a HTTP/1.1\r\n")
    assert b"Authorization: Bearer key\r\n" in heads[0]


async def test_paced_requests_stop_in_time():
    async with served(lambda head: OK) as url, connected(url, 2) as clients:
        request = build(url, "key", "GET", "/")
        paced = await clients.send_paced(system_env().clock, repeat(request), rate=1_000, seconds=0.05)

    assert 10 <= paced.answered <= 52
    assert len(paced.took) == paced.answered


async def test_all_paced_requests_are_sent_over_few_connections():
    async with served(lambda head: OK) as url, connected(url, 1) as clients:
        request = build(url, "key", "GET", "/")
        paced = await clients.send_paced(system_env().clock, repeat(request, 50), rate=1_000_000)

    assert paced.answered == len(paced.took) == 50


@pytest.mark.parametrize("answer", [b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy", b""])
async def test_a_refused_or_unanswered_request_ends_the_load(answer):
    async with served(lambda head: answer) as url, connected(url, 2) as clients:
        with pytest.raises(HoraeError, match=r"503: busy|unanswered"):
            await clients.send_all(repeat(build(url, "key", "GET", "/"), 5))
