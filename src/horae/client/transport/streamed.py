"""Streamed answers, each of which is read by its own task.

The consumer may leave a stream anywhere: by `break`, by an interrupt, by the garbage collector or at the end of a loop.
The network is read by nested generators, which fail when they are closed in another order than they were opened.
Therefore, one task opens, reads and closes them; leaving the stream cancels that task.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

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
