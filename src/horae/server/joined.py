"""One write per answer: uvicorn writes an answer's head and its body apart, each a system call and a packet of its own.

The head is held back until the body follows, which it does at once; otherwise (a stream that has nothing to say yet)
until the event loop's next turn.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD = b"HTTP/1.1 "


class JoinedTransport:
    """A transport that writes an answer's head together with what comes after it."""

    __slots__ = ("_call_soon", "_head", "_transport", "_write")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._write, self._call_soon = transport, transport.write, loop.call_soon
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(HEAD):
            self._head = data
            self._call_soon(self._flush)
            return
        self._write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._write(head)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class JoinedProtocol(HttpToolsProtocol):
    """uvicorn's protocol on such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, JoinedTransport(transport, self.loop)))
