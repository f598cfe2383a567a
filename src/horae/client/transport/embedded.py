"""Calls to a server in the same process: an ASGI application, without a socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import unquote

from horae.client.loops import Loop, on_home_loop, running_loop
from horae.client.transport.transport import ApiRequest, ApiResponse, StreamedResponse, Unanswered

Message = MutableMapping[str, Any]
Asgi = Callable[[Any, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]

MOST_PIECES = 16  # of a streamed answer, before the application waits for the reader


class EmbeddedTransport:
    """A transport that calls an ASGI application; the caller starts and stops the application.

    The application runs on the event loop in which the transport was created; calls from other loops and threads are
    passed to it.
    """

    def __init__(self, app: Asgi) -> None:
        self._app = app
        self._home = running_loop()

    @property
    def place(self) -> str:
        return "the embedded server"

    async def send(self, call: ApiRequest) -> ApiResponse:
        reply: ApiResponse = await on_home_loop(self._home, self._send(call))
        return reply

    async def _send(self, call: ApiRequest) -> ApiResponse:
        exchange = _Exchange(call)
        try:
            await self._app(exchange.scope, exchange.receive, exchange.send)
        except Exception as error:
            raise Unanswered(f"{type(error).__name__}: {error}", sent=True) from error
        parts = []
        while not exchange.body.empty() and (part := exchange.body.get_nowait()) is not None:
            parts.append(part)
        if not exchange.gone.is_set():
            raise Unanswered("The application returned before the end of its answer", sent=True)
        return ApiResponse(status=exchange.status, headers=exchange.headers, body=b"".join(parts))

    @asynccontextmanager
    async def open(self, call: ApiRequest) -> AsyncIterator[StreamedResponse]:
        there = self._open(call)
        opened = await on_home_loop(self._home, there.__aenter__())
        chunks = _from_home(self._home, opened.chunks)
        try:
            yield StreamedResponse(status=opened.status, headers=opened.headers, chunks=chunks)
        finally:
            await on_home_loop(self._home, there.__aexit__(None, None, None))

    @asynccontextmanager
    async def _open(self, call: ApiRequest) -> AsyncIterator[StreamedResponse]:
        exchange = _Exchange(call, MOST_PIECES)
        running = asyncio.ensure_future(self._app(exchange.scope, exchange.receive, exchange.send))
        running.add_done_callback(exchange.end)
        try:
            await exchange.started.wait()
            yield StreamedResponse(status=exchange.status, headers=exchange.headers, chunks=_chunks(exchange, running))
        finally:
            exchange.gone.set()
            running.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await running

    async def close(self) -> None:
        pass


class _Exchange:
    """One request and its answer as ASGI messages."""

    def __init__(self, call: ApiRequest, most: int = 0) -> None:
        """`most` is the number of pieces of the answer that may wait to be read; 0 means any number."""
        path, _, query = call.path.partition("?")
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": call.method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": _headers(call),
            "client": ("127.0.0.1", 0),
            "server": ("horae", 80),
        }
        self.status = 500
        self.headers: dict[str, str] = {}
        self.body: asyncio.Queue[bytes | None] = asyncio.Queue(most)  # None marks the end
        self.started = asyncio.Event()
        self.gone = asyncio.Event()
        self._request: bytes | None = call.body

    async def receive(self) -> Message:
        if self._request is None:
            await self.gone.wait()
            return {"type": "http.disconnect"}
        body, self._request = self._request, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]
            }
            self.started.set()
        elif message["type"] == "http.response.body":
            await self.body.put(bytes(message.get("body", b"")))
            if not message.get("more_body", False):
                await self.body.put(None)
                self.gone.set()

    def end(self, _: object) -> None:
        """Release the waiting caller when the application has returned or failed."""
        self.started.set()
        if not self.body.full():  # with a full queue, nobody waits for a piece
            self.body.put_nowait(None)


def _headers(call: ApiRequest) -> list[tuple[bytes, bytes]]:
    own = {"host": "horae", "content-length": str(len(call.body))} if call.body else {"host": "horae"}
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in {**own, **call.headers}.items()
    ]


async def _chunks(exchange: _Exchange, running: "asyncio.Future[None]") -> AsyncIterator[bytes]:
    while not (running.done() and exchange.body.empty()) and (part := await exchange.body.get()) is not None:
        yield part
    if running.done() and not running.cancelled() and (error := running.exception()):
        raise Unanswered(f"{type(error).__name__}: {error}", sent=True)


async def _from_home(home: Loop | None, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    with suppress(StopAsyncIteration):
        while True:
            yield await on_home_loop(home, _next(chunks))


async def _next(chunks: AsyncIterator[bytes]) -> bytes:
    return await anext(chunks)
