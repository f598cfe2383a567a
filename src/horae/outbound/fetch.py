"""One HTTP request and its answer, bounded in size and time. Redirects are followed only if the caller allows them."""

import asyncio
import base64
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import httpcore2
import httpx2
from msgspec import Struct

from horae.outbound.allow import AllowedAddresses
from horae.outbound.backend import CheckedBackend, Refused
from horae.version import __version__

ACCEPTED = "gzip"

CONNECT = 10.0  # seconds
SILENCE = 300.0  # the most seconds without a byte
WHOLE = 600.0  # the most seconds for the whole request, even while data arrives
MOST = 64 * 1024  # the default limit of an answer's body, in bytes
KEPT_ALIVE = 32  # the most idle connections that stay open
_REDIRECTS = (301, 302, 303, 307, 308)
# The only request headers that are sent to another origin after a redirect, because any other may be a credential.
_HARMLESS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "content-type",
        "idempotency-key",
        "traceparent",
        "tracestate",
        "user-agent",
    }
)


class Content:
    """Collects the body of an answer up to `most` bytes, and sets `is_full` if the body is longer.

    No more than this is decompressed, because a few compressed bytes can expand to gigabytes.
    """

    def __init__(self, encoding: str, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._decoder = _decoder(encoding.strip().lower())
        self.is_full = False

    def add(self, piece: bytes) -> None:
        """Add bytes as received. Raises ValueError when they cannot be decompressed."""
        room = self._most - self._size
        if self._decoder is None:
            self._keep(piece[: room + 1])
            return
        try:
            self._keep(self._decoder.decompress(piece, room + 1))
        except zlib.error as error:
            raise ValueError(f"the answer cannot be decompressed: {error}") from None

    def whole(self) -> bytes:
        """Return the first `most` bytes of the body."""
        return b"".join(self._parts)[: self._most]

    def _keep(self, piece: bytes) -> None:
        self._parts.append(piece)
        self._size += len(piece)
        self.is_full = self._size > self._most


class OutboundAnswer(Struct, frozen=True):
    """The answer to an outbound request."""

    status: int
    headers: Mapping[str, str]  # name -> value; the case of names does not matter
    body: bytes
    is_whole: bool  # false if the body was longer than the limit and is cut off
    url: str  # the last URL after redirects


class OutboundRequest(Struct, frozen=True):
    """A request to one URL."""

    method: str
    url: httpx2.URL
    headers: dict[str, str]  # name in lower case -> value
    content: bytes

    @property
    def origin(self) -> tuple[str, str, int | None]:
        default = {"http": 80, "https": 443}.get(self.url.scheme)
        return self.url.scheme, self.url.host, self.url.port or default


class Outbound:
    """Sends requests, only to checked addresses. It uses no proxies or credentials of the environment, and no cookies.

    `allowed` has the addresses that may be called besides public ones.
    """

    def __init__(self, allowed: AllowedAddresses | None = None) -> None:
        self._allowed = allowed or AllowedAddresses()
        self._pool: httpcore2.AsyncConnectionPool | None = None

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        redirects: int = 0,
        most: int = MOST,
        within: float | None = None,
    ) -> OutboundAnswer:
        """Send a request and read its answer, with at most `most` bytes of the body.

        Up to `redirects` redirects are followed. The request may take `within` seconds in all. Without `within`, one
        limit (SILENCE) ends a request without data, and another (WHOLE) ends a request whose data arrives too slowly.
        Raises Refused before anything is sent to a forbidden address. Also raises errors of httpcore2 and httpx2,
        ValueError and TimeoutError.
        """
        request = _asked(method, url, headers or {}, content)
        silence, whole = (SILENCE, WHOLE) if within is None else (within, within)
        try:
            async with asyncio.timeout(whole):
                for _ in range(redirects):
                    answer = await self._one(request, most, silence)
                    following = _next(request, answer)
                    if following is None:
                        return answer
                    request = following
                return await self._one(request, most, silence)
        except TimeoutError:
            raise TimeoutError(f"there was no complete answer within {whole:g} seconds") from None

    async def addresses(self, host: str, port: int, within: float) -> list[str]:
        """Resolve and check a host for protocols other than HTTP, and return its addresses.

        `within` is in seconds. Raises Refused as `fetch` does.
        """
        return await CheckedBackend(self._allowed).checked(host, port, within)

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()

    async def _one(self, request: OutboundRequest, most: int, silence: float) -> OutboundAnswer:
        where = httpcore2.URL(
            scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
        )
        patience = {"connect": CONNECT, "read": silence, "write": silence}
        sent = [(name.encode("latin-1"), value.encode()) for name, value in request.headers.items()]
        async with self._connections().stream(
            request.method, where, headers=sent, content=request.content or None, extensions={"timeout": patience}
        ) as response:
            headers = httpx2.Headers(response.headers)
            body = Content(headers.get("content-encoding", ""), most)
            async for piece in response.aiter_stream():
                body.add(piece)
                if body.is_full:
                    break
            return OutboundAnswer(response.status, headers, body.whole(), not body.is_full, str(request.url))

    def _connections(self) -> httpcore2.AsyncConnectionPool:
        """Return the connection pool. It is created at its first use, because reading certificates takes a while."""
        if self._pool is None:
            self._pool = httpcore2.AsyncConnectionPool(
                ssl_context=httpx2.create_ssl_context(),
                max_connections=None,
                max_keepalive_connections=KEPT_ALIVE,
                keepalive_expiry=5.0,
                network_backend=CheckedBackend(self._allowed),
            )
        return self._pool


def _asked(method: str, url: str, headers: Mapping[str, str], content: bytes) -> OutboundRequest:
    """Build a request with the usual headers. A user name and password in the URL become a header."""
    at = _checked_url(url)
    given = {
        "accept": "*/*",
        "accept-encoding": ACCEPTED,
        "user-agent": f"horae/{__version__}",
        **{name.lower(): value for name, value in headers.items()},
    }
    if at.userinfo and "authorization" not in given:
        credentials = f"{at.username}:{at.password}".encode()
        given["authorization"] = f"Basic {base64.b64encode(credentials).decode()}"
    if method in ("POST", "PUT", "PATCH") and not content:
        given["content-length"] = "0"
    given.setdefault("host", at.netloc.decode("ascii"))
    return OutboundRequest(method, at.copy_with(username=None, password=None, fragment=None), given, content)


def _checked_url(url: str) -> httpx2.URL:
    """Parse a URL. Raises Refused.

    No message has the text of the URL, because the whole URL may be a secret, and masking would not recognise a part.
    """
    try:
        at = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        raise Refused("the text to call is not a valid URL") from None
    if at.scheme not in ("http", "https") or not at.host:
        raise Refused("the URL to call is not an http or https URL with a host")
    return at


def _next(request: OutboundRequest, answer: OutboundAnswer) -> OutboundRequest | None:
    """Return the request to which an answer redirects, or None if it is no redirect.

    Raises Refused for a redirect that would be unsafe: from https to http, or with a body to another origin.
    """
    place = answer.headers.get("location", "")
    if answer.status not in _REDIRECTS or not place:
        return None
    url = _checked_url(str(request.url.join(place))).copy_with(username=None, password=None, fragment=None)
    if request.url.scheme == "https" and url.scheme == "http":
        raise Refused(f"{request.url.host} redirects from https to http, which is not followed")
    turned = answer.status == 303 or (answer.status in (301, 302) and request.method == "POST")
    method = "GET" if turned and request.method != "HEAD" else request.method
    content = b"" if method != request.method else request.content
    headers = dict(_without_body(request.headers) if method != request.method else request.headers.items())
    following = OutboundRequest(method, url, {**headers, "host": url.netloc.decode("ascii")}, content)
    if _is_same(request, following):
        return following
    if content:
        remedy = "Call the URL of the redirect instead"
        raise Refused(
            f"{request.url.host} redirects a request with a body to {url.host}, which is not followed. {remedy}"
        )
    kept = {name: value for name, value in following.headers.items() if name in _HARMLESS or name == "host"}
    return OutboundRequest(method, url, kept, content)


def _without_body(headers: dict[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in headers.items() if not name.startswith("content-"))


def _is_same(one: OutboundRequest, other: OutboundRequest) -> bool:
    """Return whether the credentials of `one` request may be sent with the `other`.

    They may, if both have the same origin, or if the other only upgrades from http to https on the default ports.
    """
    if one.origin == other.origin:
        return True
    to_tls = one.origin[0] == "http" and one.origin[2] == 80 and other.origin[0] == "https" and other.origin[2] == 443
    return to_tls and one.url.host == other.url.host


def _decoder(encoding: str) -> Any:
    """Return a decompressor for gzip, which requests accept, or None; bodies in other encodings stay as they are."""
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16) if encoding in ("gzip", "x-gzip") else None
