"""A minimal HTTP/1.1 client for exchanges: connections are reused, bodies are read whole.

A request with 60 KB up and 40 KB down took 0.18 ms of CPU time, and 0.93 ms with httpx2 (single runs, 2 cores). The
difference matters at several hundred exchanges per second.
"""

import asyncio
import ssl
from collections.abc import AsyncIterable
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

import httptools
from msgspec import Struct

MAX_ANSWER = 64 * 1024 * 1024
CONNECT_TIMEOUT = 5.0

Pieces = AsyncIterable[bytes]


class ClientResponse(Struct, frozen=True):
    """An answer, read completely; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class ClientConnection(asyncio.Protocol):
    """One connection that carries one request at a time."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[ClientResponse] | None = None
        self._transport: asyncio.Transport | None = None
        self.is_usable = False  # whether it can send another request
        self._drained: asyncio.Future[None] | None = None  # while the server does not read what is written

    async def request(self, request: bytes, more: Pieces | None = None) -> ClientResponse:
        """Send a request and read its answer. The pieces in `more`, if any, are sent after `request` as a long body.

        A server that refuses the body may answer before it has read all of it. Then no more pieces are sent.
        """
        assert self._transport is not None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0
        self.is_usable = False
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            if more is not None:
                await self._follow(more, self._answer)
            return await self._answer
        finally:
            self._answer = None

    async def _follow(self, more: Pieces, answer: "asyncio.Future[ClientResponse]") -> None:
        assert self._transport is not None
        async for piece in more:
            if answer.done():
                self._transport.close()  # the server still expects the pieces that are not sent
                return
            self._transport.write(piece)
            if self._drained is not None:
                news: set[asyncio.Future[Any]] = {self._drained, answer}
                await asyncio.wait(news, return_when=asyncio.FIRST_COMPLETED)

    def close(self) -> None:
        self.is_usable = False
        if self._transport is not None:
            self._transport.close()

    # Called by asyncio

    def pause_writing(self) -> None:
        self._drained = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_usable = True

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            self.close()  # an answer without a request
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"the answer is not HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self.resume_writing()
        self._fail(ConnectionError(str(error) if error else "the server closed the connection"))

    # Called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > MAX_ANSWER:
            self._fail(ConnectionError("the answer is too large"))
        self._body.append(body)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200 or self._answer is None or self._answer.done():
            return
        self.is_usable = bool(self._parser.should_keep_alive())
        self._answer.set_result(ClientResponse(status, self._headers, b"".join(self._body)))

    def _fail(self, error: Exception) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


class ServerConnections:
    """The connections to one server."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None, namespace: str = "") -> None:
        self.url = url
        self._at: SplitResult = urlsplit(url)
        self._tls = tls
        self._idle: list[ClientConnection] = []
        self._host = self._at.netloc.rpartition("@")[2]
        self._more = f"Horae-Namespace: {namespace}\r\n" if namespace else ""
        self.installation = ""  # the installation that the worker is registered with

    async def request(self, method: str, path: str, body: bytes, key: str, timeout: float) -> ClientResponse:
        """Send one request. Raises OSError or TimeoutError when no answer arrives.

        If the server has closed a connection while it was idle, the request is sent on another connection.
        """
        request = self._request(method, path, body, key)
        async with asyncio.timeout(timeout):
            while self._idle:
                connection = self._idle.pop()
                if connection.is_usable:
                    try:
                        return await self._over(connection, request)
                    except ConnectionError:
                        continue
            return await self._over(await self._connect(), request)

    async def upload(self, path: str, pieces: Pieces, size: int, kind: str, key: str, timeout: float) -> ClientResponse:
        """Send a request with a long body on a new connection.

        The server may have closed an idle connection, and the pieces cannot be sent a second time.
        """
        head = self._head("PUT", path, key, kind, size)
        async with asyncio.timeout(timeout):
            connection = await self._connect()
            try:
                return await connection.request(head, pieces)
            finally:
                connection.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def _over(self, connection: ClientConnection, request: bytes) -> ClientResponse:
        try:
            reply = await connection.request(request)
        except BaseException:
            connection.close()
            raise
        if connection.is_usable:
            self._idle.append(connection)
        return reply

    async def _connect(self) -> ClientConnection:
        secure = self._at.scheme == "https"
        port = self._at.port or (443 if secure else 80)
        tls = (self._tls or ssl.create_default_context()) if secure else None
        async with asyncio.timeout(CONNECT_TIMEOUT):
            loop = asyncio.get_running_loop()
            return (await loop.create_connection(ClientConnection, self._at.hostname or "", port, ssl=tls))[1]

    def _installation_header(self) -> str:
        return f"Horae-Installation: {self.installation}\r\n" if self.installation else ""

    def _request(self, method: str, path: str, body: bytes, key: str) -> bytes:
        return self._head(method, path, key, "application/json", len(body)) + body

    def _head(self, method: str, path: str, key: str, kind: str, size: int) -> bytes:
        head = (
            f"{method} {self._at.path.rstrip('/')}{path} HTTP/1.1\r\nHost: {self._host}\r\n"
            f"Authorization: Bearer {key}\r\nAccept: application/json\r\n"
            f"{self._more}{self._installation_header()}Content-Type: {kind}\r\nContent-Length: {size}\r\n\r\n"
        )
        return head.encode("latin-1")
