"""HTTP/1.1 on one connection: httptools parses, a task answers one request after another, an answer is one write.

uvicorn costs 50 us of processor time a request and this 16, of some 150 that a single submission takes: measured, and
told in docs/decisions/0011. A handler is given ASGI's scope and `receive`, and returns a `Reply`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from horae.errors import BadInput
from horae.server.answer_bytes import Sender, head, whole
from horae.server.problems import broken, problem
from horae.server.reply import Header, Receive, Reply
from horae.server.request import Request

MOST_HEAD = 64 * 1024  # bytes of a request's line and headers
MOST_HELD = 256 * 1024  # bytes of a body that nobody has asked for yet: then reading pauses
MOST_AFTER = 1024 * 1024  # bytes of a body that still come when its request is answered: then the connection ends
MOST_LINED_UP = 16  # requests sent ahead of their answers: then reading pauses
PATIENCE = 30.0  # seconds for the next piece of a request that has begun, or of an answer that nobody reads
SLOWEST = 1024  # bytes a second, after that time: whoever sends a byte now and then holds a connection for nothing

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CROWDED = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\nconnection: close\r\n\r\n"

Answer = Callable[[dict[str, Any], Receive], Awaitable[Reply]]


class Host(Protocol):
    """What a connection belongs to."""

    answer: Answer
    date: bytes
    now: float  # monotonic seconds, as of the last look
    stopping: bool
    safety: bytes  # headers that every answer carries

    def opened(self, connection: "Connection") -> bool: ...

    def closed(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    """Answers the requests of one client, in their order."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._parser = HttpRequestParser(self)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.peer: tuple[Any, ...] = ("", 0)  # the other end's address and port
        self._scheme, self._certified = "http", False  # the other end showed a certificate that was checked
        self._coming = Request()  # the request that is being read
        self._in_head, self._head_size, self._after = False, 0, 0
        self._line: deque[Request] = deque()
        self._active: Request | None = None  # what the task answers
        self._task: asyncio.Task[None] | None = None
        self._open = True
        self.leaving = False  # everything is said; what still comes is not listened to
        self._reading = True
        self._drained: asyncio.Future[None] | None = None  # while the client does not read what is written
        self._stuck_at = 0.0  # since when it does not
        self.heard_at = self._began_at = self._host.now
        self._heard = 0  # bytes, since a request began

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.peer = transport.get_extra_info("peername") or ("", 0)
        tls = transport.get_extra_info("ssl_object")
        self._scheme, self._certified = ("http", False) if tls is None else ("https", bool(tls.getpeercert()))
        if not self._host.opened(self):
            self._open = False
            self._transport.write(_CROWDED)
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._open = False
        self._host.closed(self)
        self.resume_writing()
        if self._active is not None:
            self._active.wake()

    def data_received(self, data: bytes) -> None:
        self.heard_at = self._host.now
        self._heard += len(data)
        if self.leaving:
            self._pass_over(len(data))
            return
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:  # nothing else is spoken here: it is answered as it stands
            self._coming.keep = False
        except HttpParserError as error:
            self._refuse(BadInput(f"This is not HTTP: {error}.", "Send HTTP/1.1 requests."))
            return
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > MOST_HEAD:
                remedy = f"Send at most {MOST_HEAD} bytes of them."
                self._refuse(BadInput("The request's headers are too long.", remedy), 431)
                return
        self._advance()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()
        self._stuck_at = self._host.now

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)
        self._advance()

    # What the parser calls

    def on_message_begin(self) -> None:
        self._coming = Request()
        self._in_head, self._head_size, self._after = True, 0, 0
        self._began_at, self._heard = self._host.now, 0

    def on_url(self, url: bytes) -> None:
        self._coming.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"expect":
            self._coming.expects = value.lower() == b"100-continue"
        self._coming.headers.append((name, value))

    def on_headers_complete(self) -> None:
        request, parser = self._coming, self._parser
        self._in_head = False
        request.method = parser.get_method()
        request.keep = parser.should_keep_alive()
        request.modern = parser.get_http_version() != "1.0"
        self._line.append(request)

    def on_body(self, body: bytes) -> None:
        request = self._coming
        if request.answered:
            self._pass_over(len(body))
            return
        request.parts.append(body)
        request.size += len(body)
        if request.size > MOST_HELD:
            self._pause()
        request.wake()

    def on_message_complete(self) -> None:
        self._coming.whole = True
        self._coming.wake()

    # How requests are answered

    @property
    def idle(self) -> bool:
        """Whether nothing is under way, a request that has not come to its end included."""
        return self._task is None and not self._line and not self._in_head

    @property
    def stalled(self) -> bool:
        """Whether more of a request is waited for."""
        return self._in_head or (self._active is not None and not self._active.whole)

    def is_late(self, now: float) -> bool:
        """Whether the client is too slow: to send what it began, or to read what it asked for."""
        if self._drained is not None and now - self._stuck_at > PATIENCE:
            return True
        if not (self.stalled or self.leaving) or not self._reading:
            return False
        took = now - self._began_at
        return now - self.heard_at > PATIENCE or (took > PATIENCE and self._heard < took * SLOWEST)

    def close(self) -> None:
        self._transport.close()

    def _leave(self) -> None:
        """End it from this side. Closed at once, what the client still sends would destroy the answer on its way."""
        self.leaving = True
        self._resume()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:  # TLS ends both ways at once
            self._transport.close()

    def _pass_over(self, size: int) -> None:
        self._after += size
        if self._after > MOST_AFTER:
            self._transport.close()

    def abort(self) -> None:
        """End it now, with what is under way."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def _advance(self) -> None:
        """Begin with the next request; many sent ahead, or answers that nobody reads, make others wait."""
        if len(self._line) > MOST_LINED_UP:
            self._pause()
        if self._task is None and self._line and self._open and self._drained is None:
            request = self._line.popleft()
            self._active = request
            self._task = self._loop.create_task(self._answer(request))
            self._resume()

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def _resume(self) -> None:
        if not self._reading and self._open and (self.leaving or len(self._line) <= MOST_LINED_UP):
            self._reading = True
            self._transport.resume_reading()

    async def _answer(self, request: Request) -> None:
        try:
            scope = request.scope()
            scope["client"], scope["scheme"], scope["certified"] = self.peer, self._scheme, self._certified

            async def receive() -> dict[str, Any]:
                return await self._receive(request)

            reply = await self._host.answer(scope, receive)
            if type(reply) is Reply:
                self._write(reply, request)
            else:
                await reply(scope, receive, Sender(request, self._head, self._push))
        except asyncio.CancelledError:
            self._transport.abort()
            raise
        except Exception as error:
            request.keep = False
            reply = broken(error, "http", request.target.decode("latin-1"))
            if request.begun:  # half an answer is out: only a cut connection says that it is not whole
                self._transport.abort()
            else:
                self._write(reply, request)
        finally:
            self._done(request)

    def _done(self, request: Request) -> None:
        request.answered = True
        request.parts.clear()
        self._task = self._active = None
        if not self._open:
            return
        if not request.keep or self._host.stopping:
            (self._transport.close if request.whole else self._leave)()
        else:
            self._advance()
            self._resume()

    async def _receive(self, request: Request) -> dict[str, Any]:
        """The next part of the body; when there is none, the end of the connection."""
        while True:
            if request.parts:
                body = request.parts[0] if len(request.parts) == 1 else b"".join(request.parts)
                request.parts.clear()
                request.size = 0
                self._resume()
                request.told = request.whole
                return {"type": "http.request", "body": body, "more_body": not request.whole}
            if request.whole and not request.told:
                request.told = True
                return {"type": "http.request", "body": b"", "more_body": False}
            if not self._open:
                return {"type": "http.disconnect"}
            if request.expects and not request.whole:
                request.expects = False
                self._transport.write(_CONTINUE)
            self._resume()
            request.news = self._loop.create_future()
            await request.news

    def _refuse(self, error: BadInput, status: int = 400) -> None:
        """What was sent cannot be read: say so and end; whole requests that came before it are answered first."""
        in_body = not self._in_head and not self._coming.whole
        before = self._line[-1] if self._line else self._active
        self._in_head = False
        if before is None:
            reply = problem(error, "")
            reply.status = status
            request = Request()
            request.keep = False
            self._write(reply, request)
            self._leave()
        elif in_body:
            self._transport.close()
        else:
            before.keep = False
            self.leaving = True
            self._advance()

    def _write(self, reply: Reply, request: Request) -> None:
        """A whole answer at once."""
        if self._open:
            self._transport.write(whole(reply, request, self._head))

    def _head(self, status: int, headers: Sequence[Header], request: Request) -> bytes:
        host = self._host
        always = b"%bdate: %b\r\n" % (host.safety, host.date)
        return head(status, headers, closes=not request.keep or host.stopping, always=always)

    async def _push(self, data: bytes) -> None:
        """Write a part of a long answer; waits while the client does not read."""
        if self._drained is not None:
            await self._drained
        if self._open:
            self._transport.write(data)
