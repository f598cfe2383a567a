"""A request as far as it has come."""

import asyncio
from typing import Any
from urllib.parse import unquote

from horae.errors import HoraeError
from horae.server.reply import Header


class HttpRequest:
    """What a client asks; its body may still be on its way."""

    __slots__ = (
        "answered", "begun", "broken", "expects", "head", "headers", "id", "keep", "method", "modern", "news", "parts",
        "size", "target", "told", "whole",
    )  # fmt: skip

    def __init__(self) -> None:
        self.method, self.target = b"", b""  # a path with its query, or `*`
        self.id = b""  # the client's name for it, or one that the server makes
        self.head = 0  # bytes of its line and headers
        self.headers: list[Header] = []
        self.parts: list[bytes] = []
        self.size = 0  # of the parts nobody has asked for yet
        self.whole = self.told = self.answered = self.expects = False  # `told`: that it is whole
        self.begun = False  # a part of a long answer is out
        self.keep = self.modern = True  # the connection may go on afterwards; the client knows HTTP/1.1
        self.broken: HoraeError | None = None  # the reason why the rest of the body cannot be read
        self.news: asyncio.Future[None] | None = None

    @property
    def weight(self) -> int:
        """Bytes that are held for it."""
        return self.head + self.size

    @property
    def shown(self) -> str:
        """The target, short enough for a log."""
        return self.target[:200].decode("latin-1")

    def add(self, part: bytes) -> None:
        """Keep a part of the body until the handler asks for it."""
        if part:
            self.parts.append(part)
            self.size += len(part)
        self.wake()

    def clear(self) -> None:
        """Let go of the parts."""
        self.parts.clear()
        self.size = 0

    def wake(self) -> None:
        if self.news is not None and not self.news.done():
            self.news.set_result(None)

    def scope(self) -> dict[str, Any]:
        """Return the request as ASGI describes it."""
        path, _, query = self.target.partition(b"?")
        text = path.decode("latin-1")
        return {
            "type": "http", "method": self.method.decode("latin-1"), "path": unquote(text) if "%" in text else text,
            "raw_path": path, "query_string": query, "headers": self.headers, "scheme": "http",
        }  # fmt: skip
