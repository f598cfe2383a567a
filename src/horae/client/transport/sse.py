"""Reads server-sent events from bytes, as the WHATWG's HTML standard defines them."""

from collections.abc import AsyncIterator

from msgspec import Struct


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
