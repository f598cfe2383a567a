"""HTTP/1.1 encoding of answers, as a whole or in parts."""

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any

from horae.server.http.request import HttpRequest
from horae.server.reply import SAFETY, Header, Response

_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}

BODILESS = (204, 304)  # statuses of answers without content, which have no Content-Length either (RFC 9110, 8.6)
CLOSE: Header = (b"connection", b"close")

# Encodes a status and headers for a request, with the headers of every answer.
Head = Callable[[int, Sequence[Header], HttpRequest], bytes]
Push = Callable[[bytes], Awaitable[None]]


def encode_head(status: int, headers: Sequence[Header], request: HttpRequest, always: bytes) -> bytes:
    """Return the head of an answer; `always` are lines for every answer."""
    if CLOSE in headers:
        request.keep = False
    elif not request.keep:
        headers = (*headers, CLOSE)
    elif not request.modern:
        headers = (*headers, (b"connection", b"keep-alive"))
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    if not lines.count(b"\n") == lines.count(b"\r") == len(headers):
        raise ValueError("a header holds a line break")
    return b"%b%b%b\r\n" % (_LINES.get(status) or b"HTTP/1.1 %d Other\r\n" % status, lines, always)


def encode_answer(reply: Response, request: HttpRequest, head_of: Head) -> bytes:
    """Return a whole answer."""
    if reply.status in BODILESS:
        return head_of(reply.status, reply.headers, request)
    own = ((b"content-type", reply.kind), (b"content-length", b"%d" % len(reply.body)), *reply.headers)
    first = head_of(reply.status, own, request)
    return first + reply.body if request.method != b"HEAD" else first


class HeadOnly(Exception):
    """Raised when the answer to a HEAD request is complete, since it has no body."""


class Sender:
    """ASGI's `send` for answers in parts. Parts are sent unchanged if the length is known, otherwise as chunks."""

    __slots__ = ("_chunked", "_ended", "_head_of", "_left", "_push", "_request")

    def __init__(self, request: HttpRequest, head_of: Head, push: Push) -> None:
        self._request, self._head_of, self._push = request, head_of, push
        self._left: int | None = None  # remaining bytes of the announced length
        self._chunked = self._ended = False

    async def __call__(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            await self._push(self._begin(message["status"], message["headers"]))
            if self._request.method == b"HEAD":
                self._ended = True
                raise HeadOnly
        elif part := self._part(message.get("body", b""), ends=not message.get("more_body", False)):
            await self._push(part)

    def check(self) -> None:
        """Raise if the answer is incomplete, so that the connection is cut and the client notices."""
        if not self._ended:
            raise RuntimeError("the handler returned before its answer was complete")

    def _begin(self, status: int, given: Sequence[Header]) -> bytes:
        request, headers = self._request, tuple(header for header in given if header not in SAFETY)
        length = dict(headers).get(b"content-length")
        if length is not None:
            self._left = int(length)
        elif status not in BODILESS:
            self._chunked = request.modern
            if self._chunked:
                headers = (*headers, (b"transfer-encoding", b"chunked"))
            else:
                request.keep = False
        request.begun = True
        return self._head_of(status, headers, request)

    def _part(self, body: bytes, *, ends: bool) -> bytes:
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (ends and self._left):
                raise RuntimeError("the length of the answer differs from its Content-Length")
        self._ended = ends
        if self._chunked:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return body + b"0\r\n\r\n" if ends else body
        return body
