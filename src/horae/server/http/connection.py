"""HTTP/1.1 on one connection: requests are read while there is room, and a task answers them one by one.

This module needs 16 us of processor time per request, of the about 150 us that a single submission takes; uvicorn needs
50 us (docs/decisions/0011-http.md). A handler receives ASGI's scope and `receive`, and returns a `Response`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

from horae.errors import HoraeError
from horae.server.http.answer_bytes import HeadOnly, Sender, encode_answer, encode_head
from horae.server.http.framing import RequestFraming
from horae.server.http.request import HttpRequest
from horae.server.problems import REQUEST_ID, problem, unexpected_problem
from horae.server.reply import Header, Receive, Response

MOST_HELD = 256 * 1024  # unread bytes of a body, or bytes of waiting requests, at which reading pauses
MOST_UNREAD = 64 * 1024  # bytes of answers unread by the client, at which the next answer waits
MOST_AFTER = 1024 * 1024  # bytes of a body after its answer, which are dropped; further bytes end the connection
PIECE = 64  # bytes by which each piece of such a body counts for more than its size, for the cost of reading it
MOST_QUEUED = 16  # requests sent ahead of their answers, at which reading pauses
AT_ONCE = 256  # requests and pieces of bodies that are read before other connections have their turn
PATIENCE = 30.0  # seconds for the next piece of an unfinished request, or for a client to read its answer
SLOWEST = 1024  # bytes per second that a client must send or read after PATIENCE; a slower client is disconnected

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CROWDED = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\nconnection: close\r\n\r\n"

Answer = Callable[[dict[str, Any], Receive], Awaitable[Response]]


class ConnectionHost(Protocol):
    """The listener of a connection."""

    answer: Answer
    date: bytes
    now: float  # monotonic seconds, at the last tick
    stopping: bool
    safety: bytes  # headers of every answer

    def new_id(self) -> bytes:
        """Create the id of a request that brought none."""
        ...

    def opened(self, connection: "HttpConnection") -> bool: ...

    def closed(self, connection: "HttpConnection") -> None: ...


class HttpConnection(asyncio.Protocol):
    """Answers the requests of one client, in order."""

    def __init__(self, host: ConnectionHost) -> None:
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._framing = RequestFraming()
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.peer: tuple[Any, ...] = ("", 0)  # address and port of the client or of its proxy
        self._scheme, self._certified = "http", False  # whether the client has a verified certificate
        self._coming = HttpRequest()  # the request that is being read
        self._after = 0  # bytes received for an answered request
        self._queue: deque[HttpRequest] = deque()
        self._active: HttpRequest | None = None  # the request that the task answers
        self._task: asyncio.Task[None] | None = None
        self._open = True
        self._ended = False  # no further request is read: the last one was read, or unreadable bytes followed
        self.leaving = False  # the last answer is sent; further bytes are dropped
        self._reading = True
        self._soon = False  # reading continues in the next turn of the loop
        self._drained: asyncio.Future[None] | None = None  # while the client does not read its answer
        self._closing = False
        # For a client that reads its answer slowly: the time and the number of unread bytes when the wait began, the
        # last known number, and the time at which that number last changed.
        self._wait_began_at, self._unread_at_first, self._unread, self._read_at = 0.0, 0, 0, 0.0
        self.heard_at = self._began_at = self._host.now
        self._heard = 0  # bytes since the start of a request

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(MOST_UNREAD)
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
        if not self._framing.midway and not self._ended:
            self._began_at, self._heard = self.heard_at, 0
        self._heard += len(data)
        if self._ended:
            self._pass_over(len(data))
        else:
            self._framing.feed(data)
            self._read()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()
        self._begin_to_wait()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)
        self._advance()

    # Reading

    @property
    def _is_full(self) -> bool:
        """Return whether reading must wait until requests are answered, or until the handler receives their bodies."""
        line, coming = self._queue, self._coming
        if len(line) >= MOST_QUEUED or coming.size > MOST_HELD:
            return True
        return len(line) > 1 and sum(request.weight for request in line) > MOST_HELD

    def _read(self) -> None:
        """Read as many requests as there is room for, and start to answer."""
        more = AT_ONCE
        try:
            while more and not self._ended and not self._is_full and (part := self._framing.take()) is not None:
                coming, more = self._coming, more - 1
                if isinstance(part, HttpRequest):
                    coming = self._coming = part
                    self._after, self._began_at, self._heard = 0, self._host.now, 0
                    self._queue.append(part)
                elif coming.answered:
                    self._pass_over(len(part) + PIECE)
                else:
                    coming.add(part)
                if not coming.keep and coming.whole:
                    self._ended = True
        except HoraeError as error:
            self._refuse(error)
            return
        if not more:
            self._read_soon()
        (self._resume if more and not self._is_full else self._pause)()
        self._advance()

    def _refuse(self, error: HoraeError) -> None:
        """Answer unreadable bytes with the reason, and end the connection. Earlier requests are answered first."""
        coming, self._ended = self._coming, True
        last = self._queue[-1] if self._queue else self._active
        if last is None:
            if coming.whole or not coming.headers:
                request = HttpRequest()
                request.keep, request.id = False, self._host.new_id()
                self._write(problem(error, ""), request)
            self._leave()
            return
        last.keep = False
        if last is coming and not last.whole:
            last.broken = error
            last.wake()
        self._advance()

    def _read_on(self) -> None:
        """If there is room, continue to read: first the bytes received so far, then the socket."""
        midway = self._framing.midway
        if (midway or not self._reading) and self._open and not self._is_full:
            (self._read if midway and not self._ended else self._resume)()

    def _read_soon(self) -> None:
        """Continue reading after other connections had their turn."""
        if not self._soon:
            self._soon = True
            self._loop.call_soon(self._read_now)

    def _read_now(self) -> None:
        self._soon = False
        self._read_on()

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def _resume(self) -> None:
        if not self._reading:
            self._reading = True
            self.heard_at = self._began_at = self._host.now  # the pause does not count against the client
            self._heard = 0
            self._transport.resume_reading()

    def _pass_over(self, size: int) -> None:
        self._after += size
        if self._after > MOST_AFTER:
            self._ended = True
            self.close()

    # Ending

    @property
    def idle(self) -> bool:
        """Return whether nothing is in progress, not even an incomplete request."""
        return self._task is None and not self._queue and not self._framing.midway

    @property
    def stalled(self) -> bool:
        """Return whether a request is incomplete, answered or not."""
        return self._framing.midway

    def is_late(self, now: float) -> bool:
        """Return whether the client is too slow to send the rest of a request, or to read its answer."""
        if (self._drained is not None or self._closing) and self._is_unread(now):
            return True
        if not (self.stalled or self.leaving) or not self._reading:
            return False
        took = now - self._began_at
        return now - self.heard_at > PATIENCE or (took > PATIENCE and self._heard < took * SLOWEST)

    def _begin_to_wait(self) -> None:
        self._wait_began_at = self._read_at = self._host.now
        self._unread_at_first = self._unread = self._transport.get_write_buffer_size()

    def _is_unread(self, now: float) -> bool:
        """Return whether the client reads its answer too slowly, also after `close`."""
        left = self._transport.get_write_buffer_size()
        if left != self._unread:
            self._unread, self._read_at = left, now
        took = now - self._wait_began_at
        return now - self._read_at > PATIENCE or (took > PATIENCE and self._unread_at_first - left < took * SLOWEST)

    def close(self) -> None:
        """Close the connection after the client has read its answers."""
        if not self._closing and self._drained is None:
            self._begin_to_wait()
        self._closing = True
        self._transport.close()

    def abort(self) -> None:
        """Close the connection now, and cancel its request."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def _leave(self) -> None:
        """Close only the sending side. A full close would discard the answer if the client is still sending bytes."""
        self.leaving = self._ended = True
        self._resume()
        self.heard_at = self._began_at = self._host.now
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:  # TLS closes both directions at once
            self.close()

    # Answering

    def _advance(self) -> None:
        """Start with the next request, unless the client is slow to read earlier answers."""
        if self._task is None and self._queue and self._open and self._drained is None:
            request = self._queue.popleft()
            self._active = request
            self._task = self._loop.create_task(self._answer(request))
            self._read_on()

    async def _answer(self, request: HttpRequest) -> None:
        try:
            request.id = request.id or self._host.new_id()
            REQUEST_ID.set(request.id.decode("latin-1"))  # sets the id for this task alone
            scope = request.scope()
            scope["client"], scope["scheme"], scope["certified"] = self.peer, self._scheme, self._certified

            async def receive() -> dict[str, Any]:
                return await self._receive(request)

            reply = await self._host.answer(scope, receive)
            if type(reply) is Response:
                self._write(reply, request)
            else:
                sender = Sender(request, self._head, self._push)
                with suppress(HeadOnly):
                    await reply(scope, receive, sender)
                sender.check()
            if self._drained is not None and (not request.keep or self._host.stopping):
                await self._drained  # after a close, TLS gives the client little time to read the rest
        except asyncio.CancelledError:
            self._transport.abort()
            raise
        except Exception as error:
            request.keep = False
            self._fail(error, request)
        finally:
            self._done(request)

    def _fail(self, error: Exception, request: HttpRequest) -> None:
        """Answer an error of the handler. An incomplete answer is cut off, so that the client notices."""
        if request.begun and not self._open:
            return
        reply = (
            problem(error, "") if isinstance(error, HoraeError) else unexpected_problem(error, "http", request.shown)
        )
        if request.begun:
            self._transport.abort()
        else:
            self._write(reply, request)

    def _done(self, request: HttpRequest) -> None:
        request.answered = True
        request.clear()
        if request.whole:
            request.headers = []
        self._task = self._active = None
        if not self._open:
            return
        if not request.keep or self._host.stopping:
            nothing_follows = request.whole and not self._after and not self._framing.midway
            (self.close if nothing_follows else self._leave)()
        else:
            self._advance()
            self._read_on()

    async def _receive(self, request: HttpRequest) -> dict[str, Any]:
        """Return the next part of the body; without one, wait for the end of the connection."""
        while True:
            if request.parts:
                body = request.parts[0] if len(request.parts) == 1 else b"".join(request.parts)
                request.clear()
                request.end_delivered = request.whole
                if not request.end_delivered:
                    self._read_soon()
                return {"type": "http.request", "body": body, "more_body": not request.end_delivered}
            if request.whole and not request.end_delivered:
                request.end_delivered = True
                return {"type": "http.request", "body": b"", "more_body": False}
            if request.broken is not None and not request.begun:
                raise request.broken
            if not self._open or request.broken is not None:
                return {"type": "http.disconnect"}
            if request.expects and not request.whole:
                request.expects = False
                self._transport.write(_CONTINUE)
            self._read_soon()
            request.wakeup = self._loop.create_future()
            await request.wakeup

    def _write(self, reply: Response, request: HttpRequest) -> None:
        """Write a whole answer at once."""
        if self._open:
            self._transport.write(encode_answer(reply, request, self._head))

    def _head(self, status: int, headers: Sequence[Header], request: HttpRequest) -> bytes:
        host = self._host
        # A client that waited for 100 Continue may or may not send its body now: the next bytes would be ambiguous.
        if host.stopping or (request.expects and not request.whole):
            request.keep = False
        always = b"%bdate: %b\r\nx-request-id: %b\r\n" % (host.safety, host.date, request.id)
        return encode_head(status, headers, request, always)

    async def _push(self, data: bytes) -> None:
        """Write a part of a long answer; wait while the client does not read."""
        if self._drained is not None:
            await self._drained
        if self._open:
            self._transport.write(data)
