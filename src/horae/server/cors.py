"""CORS: the pages of other sites that may call the API, with their own key and never with a cookie."""

from collections.abc import Collection, Mapping

from horae.server.reply import Header, Response

ALLOWED = (
    b"authorization, content-type, horae-namespace, idempotency-key, if-match, if-none-match, traceparent, tracestate,"
    b" x-request-id"
)
METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"
EXPOSED = b"etag, location, retry-after, x-request-id"
VARY: Header = (b"vary", b"origin")


class Cors:
    """The origins whose pages may read answers."""

    def __init__(self, origins: Collection[str] = ()) -> None:
        """Take origins such as `https://dash.example.com`; `*` means all."""
        self._origins = frozenset(origin.rstrip("/").lower().encode() for origin in origins)

    def allowed(self, headers: Mapping[bytes, bytes]) -> bytes | None:
        """Return the value of Access-Control-Allow-Origin; None if pages of this origin may not read the answer."""
        origin = headers.get(b"origin") if self._origins else None
        if origin is None:
            return None
        if b"*" in self._origins:
            return b"*"
        return origin if origin.lower() in self._origins else None

    def preflight(self, origin: bytes) -> Response:
        """Answer a preflight: the OPTIONS request that a browser sends before the request of a page."""
        own = (
            (b"access-control-allow-methods", METHODS),
            (b"access-control-allow-headers", ALLOWED),
            (b"access-control-max-age", b"600"),
        )
        return self.open(Response(204, headers=own), origin)

    def open(self, reply: Response, origin: bytes) -> Response:
        """Let a page of this origin read an answer."""
        own = ((b"access-control-allow-origin", origin), (b"access-control-expose-headers", EXPOSED), VARY)
        reply.headers = (*reply.headers, *own)
        return reply
