"""Answers as HTTP/1.1 spells them: a whole one at once, or parts of a length that nobody knows yet."""

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any

from horae.server.reply import SAFETY, Header, Reply
from horae.server.request import Request

_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}

# A status and its headers, for a request, as bytes with what every answer carries.
Head = Callable[[int, Sequence[Header], Request], bytes]
Push = Callable[[bytes], Awaitable[None]]


def head(status: int, headers: Sequence[Header], *, closes: bool, always: bytes) -> bytes:
    """An answer's first part; `always` are lines that every answer carries."""
    if closes:
        headers = (*headers, (b"connection", b"close"))
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    if lines.count(b"\n") != len(headers):
        raise ValueError("a header holds a line break")
    return b"%b%b%b\r\n" % (_LINES.get(status) or b"HTTP/1.1 %d Other\r\n" % status, lines, always)


def whole(reply: Reply, request: Request, head_of: Head) -> bytes:
    """All of an answer."""
    if reply.status == 204:
        return head_of(reply.status, reply.headers, request)
    own = ((b"content-type", reply.kind), (b"content-length", b"%d" % len(reply.body)), *reply.headers)
    first = head_of(reply.status, own, request)
    return first + reply.body if request.method != b"HEAD" else first


class Sender:
    """ASGI's `send` for answers that go on."""

    __slots__ = ("_head_of", "_push", "_request")

    def __init__(self, request: Request, head_of: Head, push: Push) -> None:
        self._request, self._head_of, self._push = request, head_of, push

    async def __call__(self, message: dict[str, Any]) -> None:
        request = self._request
        if message["type"] == "http.response.start":
            headers = tuple(header for header in message["headers"] if header not in SAFETY)
            if request.modern:
                headers = (*headers, (b"transfer-encoding", b"chunked"))
            else:
                request.keep = False
            request.begun = True
            await self._push(self._head_of(message["status"], headers, request))
            return
        body = message.get("body", b"")
        if request.modern and body:
            body = b"%x\r\n%b\r\n" % (len(body), body)
        if request.modern and not message.get("more_body", False):
            body += b"0\r\n\r\n"
        if body:
            await self._push(body)
