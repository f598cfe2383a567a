"""A request on a connection, which may not have arrived completely."""

import asyncio
from typing import Any
from urllib.parse import unquote

from horae.errors import HoraeError
from horae.server.reply import Header


class HttpRequest:
    """A client's request; its body may still be arriving."""

    __slots__ = (
        "answered", "begun", "broken", "end_delivered", "expects", "head", "headers", "id", "keep", "method", "modern",
        "parts", "size", "target", "wakeup", "whole",
    )  # fmt: skip

    def __init__(self) -> None:
        self.method, self.target = b"", b""  # the target is a path with its query, or `*`
        self.id = b""  # from the client, or created by the server
        self.head = 0  # bytes of its line and headers
        self.headers: list[Header] = []
        self.parts: list[bytes] = []  # pieces of the body that the handler has not received
        self.size = 0  # bytes of `parts`
        self.whole = self.answered = False  # `whole`: the body has arrived completely
        self.expects = False  # the client waits for 100 Continue before it sends the body
        self.end_delivered = False  # the handler knows that the request is whole
        self.begun = False  # a part of a long answer is sent
        self.keep = self.modern = True  # `keep`: the connection stays open; `modern`: HTTP/1.1, not 1.0
        self.broken: HoraeError | None = None  # the reason why the rest of the body cannot be read
        self.wakeup: asyncio.Future[None] | None = None

    @property
    def weight(self) -> int:
        """Return the bytes held for this request."""
        return self.head + self.size

    @property
    def shown(self) -> str:
        """Return the target, short enough for a log."""
        return self.target[:200].decode("latin-1")

    def add(self, part: bytes) -> None:
        """Store a part of the body for the handler, and wake the handler."""
        if part:
            self.parts.append(part)
            self.size += len(part)
        self.wake()

    def clear(self) -> None:
        """Release the parts."""
        self.parts.clear()
        self.size = 0

    def wake(self) -> None:
        if self.wakeup is not None and not self.wakeup.done():
            self.wakeup.set_result(None)

    def scope(self) -> dict[str, Any]:
        """Return the request as an ASGI scope."""
        path, _, query = self.target.partition(b"?")
        text = path.decode("latin-1")
        return {
            "type": "http", "method": self.method.decode("latin-1"), "path": unquote(text) if "%" in text else text,
            "raw_path": path, "query_string": query, "headers": self.headers, "scheme": "http",
        }  # fmt: skip
