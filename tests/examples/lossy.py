"""An unreliable network: an HTTP proxy that loses every third request, or its answer."""

import asyncio
from asyncio import StreamReader, StreamWriter

ANSWER_LOST, REQUEST_LOST = 1, 4  # positions within six requests


class LossyProxy:
    """A proxy that forwards requests to a server and loses some, so that clients must retry."""

    def __init__(self) -> None:
        self.port = 0
        self.target = 0
        self.lost = 0
        self._count = 0
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "LossyProxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            while request := await _message(reader):
                answer = await self._forward(request)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _forward(self, request: bytes) -> bytes | None:
        self._count += 1
        fate = self._count % 6
        if fate == REQUEST_LOST:
            self.lost += 1
            return None
        reader, writer = await asyncio.open_connection("127.0.0.1", self.target)
        writer.write(request)
        answer = await _message(reader)
        writer.close()
        if fate == ANSWER_LOST:
            self.lost += 1
            return None
        return answer


async def _message(reader: StreamReader) -> bytes:
    """Return one request or answer with its body; empty at the end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    names = (line.partition(b":") for line in head.split(b"\r\n"))
    lengths = [int(value) for name, _, value in names if name.lower() == b"content-length"]
    return head + await reader.readexactly(lengths[0] if lengths else 0)
