"""A request as far as it has come."""

import asyncio
from typing import Any
from urllib.parse import unquote

from httptools import parse_url

from horae.server.reply import Header


class Request:
    """What a client asks; its body may still be on its way."""

    __slots__ = (
        "answered", "begun", "expects", "headers", "keep", "method", "modern", "news", "parts", "size", "target",
        "told", "whole",
    )  # fmt: skip

    def __init__(self) -> None:
        self.method, self.target = b"", b""
        self.headers: list[Header] = []
        self.parts: list[bytes] = []
        self.size = 0  # of the parts nobody has asked for yet
        self.whole = self.told = self.answered = self.expects = False  # `told`: that it is whole
        self.begun = False  # a part of a long answer is out
        self.keep = self.modern = True  # the connection may go on afterwards; the client knows HTTP/1.1
        self.news: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self.news is not None and not self.news.done():
            self.news.set_result(None)

    def scope(self) -> dict[str, Any]:
        """The request as ASGI describes it."""
        target = self.target
        if not target.startswith(b"/") and target != b"*":
            url = parse_url(target)
            target = (url.path or b"/") + (b"?" + url.query if url.query else b"")
        path, _, query = target.partition(b"?")
        text = path.decode("latin-1")
        return {
            "type": "http", "method": self.method.decode("latin-1"), "path": unquote(text) if "%" in text else text,
            "raw_path": path, "query_string": query, "headers": self.headers, "scheme": "http",
        }  # fmt: skip
