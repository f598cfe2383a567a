"""Clients that occupy connections: silent, slow to send, slow to read, and too many."""

import asyncio
import socket
from typing import Any

import pytest

from horae.env import SECOND, VirtualClock, virtual_env
from horae.server.http.connection import PATIENCE, Answer, HttpConnection
from horae.server.http.connection_limits import ConnectionLimits
from horae.server.http.listener import KEEP_ALIVE, HttpListener
from horae.server.reply import Response
from tests.waiting import eventually


async def answers(scope: Any, receive: Any) -> Response:
    while (await receive())["more_body"]:
        pass
    return Response(200, b"x" * 10_000_000)


class Host:
    """The host of a connection, with a controlled clock."""

    def __init__(self) -> None:
        self.answer: Answer = answers
        self.date, self.safety, self.now, self.stopping = b"", b"", 0.0, False

    def new_id(self) -> bytes:
        return b"1"

    def opened(self, connection: HttpConnection) -> bool:
        self.connection = connection
        return True

    def closed(self, connection: HttpConnection) -> None: ...


async def some(scope: Any, receive: Any) -> Response:
    return Response(200, b"x" * 200_000)


async def refuses(scope: Any, receive: Any) -> Response:
    return Response(401)


async def connected(answer: Answer = answers) -> tuple[Host, socket.socket]:
    host, (near, far) = Host(), socket.socketpair()
    host.answer = answer
    far.setblocking(False)
    await asyncio.get_running_loop().connect_accepted_socket(lambda: HttpConnection(host), near)
    return host, far


async def drip(host: Host, far: socket.socket, begun: bytes, seconds: int) -> bool:
    """Send a byte at intervals; return whether the connection is late before the time is over."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(far, begun)
    await eventually(lambda: host.connection.stalled)
    for _ in range(0, seconds, 10):
        host.now += 10
        heard = host.connection._heard
        await loop.sock_sendall(far, b"x")
        await eventually(lambda heard=heard: host.connection._heard > heard)  # type: ignore[misc]
        if host.connection.is_late(host.now):
            return True
    return False


@pytest.mark.parametrize(
    "begun",
    [
        b"GET / HTTP/1.1\r\nHost: h\r\nx-slow: ",
        b"POST / HTTP/1.1\r\nHost: h\r\ncontent-length: 100000\r\n\r\nx",
        b"POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\n\r\nffff\r\nx",
    ],
    ids=["head", "body", "chunks"],
)
async def test_a_client_that_drips_bytes_loses_its_connection(begun: bytes):
    host, far = await connected()
    assert await drip(host, far, begun, 120)
    far.close()


@pytest.mark.parametrize(
    "begun",
    [
        b"content-length: 100000\r\n\r\nx",
        b"transfer-encoding: chunked\r\n\r\n",
        b"transfer-encoding: chunked\r\n\r\n1;",
        b"transfer-encoding: chunked\r\n\r\n0\r\n",
        b"\r\n\r\n",
    ],
    ids=["body", "chunks", "extension", "trailers", "empty-line"],
)
async def test_an_unfinished_request_that_was_answered_loses_its_connection(begun: bytes):
    host, far = await connected(refuses)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(far, b"GET / HTTP/1.1\r\nhost: h\r\n" + begun)
    assert (await loop.sock_recv(far, 65536)).startswith(b"HTTP/1.1 401")
    await eventually(lambda: host.connection._task is None)
    assert await drip(host, far, b"", 120)
    far.close()


async def test_a_client_that_does_not_read_its_answer_loses_its_connection():
    host, far = await connected()
    await asyncio.get_running_loop().sock_sendall(far, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await eventually(lambda: host.connection._drained is not None)
    assert not host.connection.is_late(host.now + 1)
    assert host.connection.is_late(host.now + PATIENCE + 1)
    far.close()


async def test_a_large_answer_may_take_long_while_the_client_reads_it():
    host, far = await connected()
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(far, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await eventually(lambda: host.connection._drained is not None)
    for _ in range(10):
        host.now += PATIENCE - 1
        left = host.connection._transport.get_write_buffer_size()
        while host.connection._transport.get_write_buffer_size() == left:
            await loop.sock_recv(far, 65536)
        assert not host.connection.is_late(host.now)
    assert host.connection.is_late(host.now + PATIENCE + 1), "it is not read any more"
    far.close()


@pytest.mark.parametrize("ending", [b"", b"Connection: close\r\n"], ids=["idle", "last"])
async def test_a_client_that_stops_reading_loses_its_connection(ending: bytes):
    clock = VirtualClock()
    listener, sock = HttpListener(virtual_env(clock=clock), some), socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # only a small part of an answer is buffered
    await listener.start(sock)
    loop, far = asyncio.get_running_loop(), socket.socket()
    far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    far.setblocking(False)
    await loop.sock_connect(far, sock.getsockname())
    await loop.sock_sendall(far, b"GET / HTTP/1.1\r\nHost: h\r\n%b\r\n" % ending)
    await eventually(lambda: any(connection._drained is not None for connection in listener._connections))
    (connection,) = listener._connections
    while connection._drained is not None:
        await loop.sock_recv(far, 2048)
    await eventually(lambda: connection._task is None)
    assert connection._transport.get_write_buffer_size() > 0
    for seconds in (KEEP_ALIVE + 1, PATIENCE + 1):
        clock.advance(int(seconds * SECOND))
        listener._look()
    await eventually(lambda: not listener._connections)
    far.close()
    await listener.stop(0.1)


def test_one_address_does_not_take_all_connections():
    crowd = ConnectionLimits(most=10, most_of_one=3)
    assert [crowd.enter("10.0.0.1") for _ in range(4)] == [True, True, True, False]
    assert crowd.enter("10.0.0.2")
    crowd.leave("10.0.0.1")
    assert crowd.enter("10.0.0.1")
    assert [crowd.enter("127.0.0.1") for _ in range(7)].count(True) == 6  # up to the total limit


async def test_a_connection_beyond_the_bound_is_answered_503():
    listener = HttpListener(virtual_env(clock=VirtualClock()), answers, limits=ConnectionLimits(most=1))
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await listener.start(sock)
    _, first = await asyncio.open_connection(*sock.getsockname())
    await eventually(lambda: len(listener._connections) == 1)
    reader, second = await asyncio.open_connection(*sock.getsockname())
    assert (await reader.read()).startswith(b"HTTP/1.1 503")
    for writer in (first, second):
        writer.close()
    await listener.stop(0.1)
