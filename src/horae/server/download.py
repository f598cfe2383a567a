"""An answer as long as a file, read piece by piece and never held whole."""

import asyncio
import os
from typing import BinaryIO

from horae.server.reply import Receive, Reply, Scope, Send

PIECE = 256 * 1024


class Download(Reply):
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


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
