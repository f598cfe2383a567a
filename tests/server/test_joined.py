"""An answer's head and body are one write; a head whose body is late does not wait for it."""

import asyncio

from horae.server.joined import JoinedTransport


class Recording:
    """A transport that notes what is written to it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def joined() -> tuple[Recording, JoinedTransport]:
    below = Recording()
    return below, JoinedTransport(below, asyncio.get_running_loop())  # type: ignore[arg-type]


async def test_an_answer_is_one_write():
    below, transport = await joined()
    transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
    transport.write(b"{}")
    assert below.written == [b"HTTP/1.1 200 OK\r\n\r\n{}"]
    await asyncio.sleep(0)
    assert len(below.written) == 1


async def test_a_head_goes_alone_when_nothing_follows_at_once():
    below, transport = await joined()
    transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
    await asyncio.sleep(0)
    transport.write(b"data: 1\n\n")
    transport.write(b"data: 2\n\n")
    assert below.written == [b"HTTP/1.1 200 OK\r\n\r\n", b"data: 1\n\n", b"data: 2\n\n"]


async def test_an_empty_body_sends_the_head_at_once():
    below, transport = await joined()
    transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    transport.write(b"")
    assert below.written == [b"HTTP/1.1 204 No Content\r\n\r\n"]


async def test_what_is_held_is_written_before_the_end():
    below, transport = await joined()
    transport.write(b"HTTP/1.1 500 No\r\n\r\n")
    transport.close()
    assert below.written == [b"HTTP/1.1 500 No\r\n\r\n"]
    assert transport.is_closing()
