"""Answers with long contents, which are sent in pieces and never held in memory as a whole."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import BinaryIO

from horae.server.reply import Header, Receive, Response, Scope, Send

PIECE = 256 * 1024  # bytes


class Download(Response):
    """A file's content, with its length, so that a client notices an answer that was cut short."""

    __slots__ = ("_file",)

    def __init__(self, file: BinaryIO, kind: bytes) -> None:
        super().__init__(200, kind=kind)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_gone(receive))
        try:
            size = os.fstat(self._file.fileno()).st_size
            await self.start(send, (b"content-type", self.kind), (b"content-length", b"%d" % size))
            while not gone.done() and (piece := await asyncio.to_thread(self._file.read, PIECE)):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            self._file.close()


class StreamedContent(Response):
    """A content that arrives in pieces. `pieces` is closed when the answer ends, also when the client has gone."""

    __slots__ = ("_pieces", "_size")

    def __init__(
        self, pieces: AsyncGenerator[bytes], kind: bytes, headers: Iterable[Header] = (), size: int | None = None
    ) -> None:
        super().__init__(200, kind=kind, headers=headers)
        self._pieces, self._size = pieces, size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_gone(receive))
        length = () if self._size is None else ((b"content-length", b"%d" % self._size),)
        try:
            async with aclosing(self._pieces) as pieces:
                await self.start(send, (b"content-type", self.kind), *length)
                async for piece in pieces:
                    await asyncio.sleep(0)  # pieces may arrive without waiting: let other tasks, and `gone`, run
                    if gone.done():
                        return
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
