"""ASGI answers with the security headers that every answer has. Their bodies are small and held in memory."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON = b"application/json"
PROBLEM = b"application/problem+json"

# No inline script or style, no content of other sites, no embedding in frames.
SAFETY: tuple[Header, ...] = (
    (b"content-security-policy", b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
STRICT_TRANSPORT: Header = (b"strict-transport-security", b"max-age=31536000")
UNCACHED: Header = (b"cache-control", b"no-store")

encode = msgspec.json.Encoder().encode


class Response:
    """One answer with its body."""

    __slots__ = ("body", "headers", "kind", "status", "stored_body")

    def __init__(
        self, status: int = 200, body: bytes = b"", kind: bytes = JSON, headers: Iterable[Header] = (UNCACHED,)
    ) -> None:
        self.status, self.body, self.kind, self.headers = status, body, kind, tuple(headers)
        # If `body` holds a secret: the body to store for repetitions with the same Idempotency-Key.
        self.stored_body: bytes | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.status == 204:
            await self.start(send)
        else:
            await self.start(send, (b"content-type", self.kind), (b"content-length", b"%d" % len(self.body)))
        await send({"type": "http.response.body", "body": self.body})

    async def start(self, send: Send, *own: Header) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": [*own, *self.headers, *SAFETY]})


def ok(value: object, status: int = 200, *, location: str | None = None, version: int | None = None) -> Response:
    """Return an answer with a JSON document.

    With `version`, the answer has an ETag of two parts: the version, for If-Match, and a digest of the whole answer,
    for If-None-Match, because states and counts change without a new version. The ETag is weak, because answers are
    also sent compressed.
    """
    headers, body = [UNCACHED], encode(value)
    if location is not None:
        headers.append((b"location", location.encode()))
    if version is not None:
        digest = blake2b(body, digest_size=6).hexdigest()
        headers.append((b"etag", f'W/"{version}.{digest}"'.encode()))
    return Response(status, body, headers=headers)


def nothing() -> Response:
    """Return an empty answer (204)."""
    return Response(204)
