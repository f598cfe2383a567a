"""Streamed answers, each of which is read by its own task, and the server-sent events in them.

The consumer may leave a stream anywhere: by `break`, by an interrupt, by the garbage collector or at the end of a loop.
The network is read by nested generators, which fail when they are closed in another order than they were opened.
Therefore, one task opens, reads and closes them; leaving the stream cancels that task.

Events are read as the WHATWG's HTML standard defines them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct

from horae.client.loops import needed_loop
from horae.client.transport.transport import StreamedResponse


class ResponseStream:
    """An open answer: enter it for its status and headers, iterate over its chunks, leave it at any time."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[StreamedResponse]]) -> None:
        self._opening = opening
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(1)  # None wakes the reader at the end
        self._ended = False
        self._error: BaseException | None = None

    async def __aenter__(self) -> StreamedResponse:
        loop = needed_loop()
        self._opened: asyncio.Future[StreamedResponse] = loop.create_future()
        self._reading = loop.create_task(self._read(), name="horae-stream")
        try:
            opened = await self._opened
        except BaseException:
            await self.__aexit__()
            raise
        return StreamedResponse(status=opened.status, headers=opened.headers, chunks=self)

    async def __aexit__(self, *_: object) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = None if self._ended and self._chunks.empty() else await self._chunks.get()
        if chunk is not None:
            return chunk
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def _read(self) -> None:
        try:
            async with self._opening() as opened:
                self._opened.set_result(opened)
                await self._pass_on(opened.chunks)
        except (Exception, asyncio.CancelledError) as error:
            self._error = error
        finally:
            self._end()

    async def _pass_on(self, chunks: Any) -> None:
        try:
            async for chunk in chunks:
                await self._chunks.put(chunk)
        finally:
            if close := getattr(chunks, "aclose", None):
                await close()

    def _end(self) -> None:
        self._ended = True
        if self._chunks.empty():
            self._chunks.put_nowait(None)
        if not self._opened.done():
            self._opened.set_exception(self._error) if isinstance(self._error, Exception) else self._opened.cancel()


class ServerSentEvent(Struct, frozen=True):
    """One event of a stream."""

    event: str
    data: str
    id: str


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Yield the lines of chunked bytes; a line may be spread over several chunks."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode(errors="replace")


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[ServerSentEvent]:
    """Yield events with data; skip comments, which keep a connection alive."""
    name, last, data = "", "", list[str]()
    async for line in lines(chunks):
        if not line:
            if data:
                yield ServerSentEvent(name or "message", "\n".join(data), last)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id":
            last = value
