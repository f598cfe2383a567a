"""A small HTTP server for tests: it answers from a function, and stores the requests."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct


class Asked(Struct):
    """One received request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = tuple[int, dict[str, str], bytes]


class Web:
    """The server's state: `answer` decides, `asked` has the requests, `connections` counts."""

    def __init__(self, answer: Callable[[Asked], Answer | None]) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.connections = 0
        self.url = ""
        self._open: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    def drop(self) -> None:
        """Close every connection."""
        for writer in self._open:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.asked.append(Asked(method, path, headers, body))
        answer = self.answer(self.asked[-1])
        if answer is None:  # stay silent
            await asyncio.Event().wait()
            return False
        status, more, content = answer
        lines = [
            f"HTTP/1.1 {status} X",
            *(f"{k}: {v}" for k, v in more.items()),
            f"content-length: {len(content)}",
            "",
            "",
        ]
        writer.write("\r\n".join(lines).encode() + content)
        await writer.drain()
        return more.get("connection") != "close"


@asynccontextmanager
async def web(answer: Callable[[Asked], Answer | None]) -> AsyncIterator[Web]:
    """Run a server for as long as the block lasts."""
    made = Web(answer)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield made
        made.drop()
