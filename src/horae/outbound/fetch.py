"""One request and its answer, bounded in size and time. Redirects are returned unless they may be followed."""

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
SILENCE = 300.0  # seconds without a byte
WHOLE = 600.0  # seconds for the whole request, however slowly data arrives
MOST = 64 * 1024  # the default limit of a body, in bytes
KEPT_ALIVE = 32  # idle connections
_REDIRECTS = (301, 302, 303, 307, 308)
# Request headers that another origin may see: anything else may be a credential.
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
    """Collects a body up to `most` bytes and decompresses no more, because a few bytes can expand to gigabytes.

    `is_full` is set when there is more.
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
            raise ValueError(f"the answer cannot be unpacked: {error}") from None

    def whole(self) -> bytes:
        return b"".join(self._parts)[: self._most]

    def _keep(self, piece: bytes) -> None:
        self._parts.append(piece)
        self._size += len(piece)
        self.is_full = self._size > self._most


class OutboundAnswer(Struct, frozen=True):
    """An answer; the case of header names does not matter."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool
    url: str  # the last URL after redirects


class OutboundRequest(Struct, frozen=True):
    """A request to one URL."""

    method: str
    url: httpx2.URL
    headers: dict[str, str]  # by lower-case name
    content: bytes

    @property
    def origin(self) -> tuple[str, str, int | None]:
        default = {"http": 80, "https": 443}.get(self.url.scheme)
        return self.url.scheme, self.url.host, self.url.port or default


class Outbound:
    """Calls checked addresses only; it ignores proxies, cookies and credentials of the environment."""

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
        """Send a request and read its answer, up to `most` bytes of the body, within so many seconds in all.

        Without `within` there are two limits, of silence and of the whole request, so that a slow trickle of data ends,
        too. Raises Refused before anything is sent to a forbidden address; otherwise errors of httpcore2 and httpx2,
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
            raise TimeoutError(f"there was no whole answer within {whole:g} seconds") from None

    async def addresses(self, host: str, port: int, within: float) -> list[str]:
        """Return a host's addresses, for protocols other than HTTP. Raises Refused as `fetch` does."""
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
        """Return the connection pool, created at first use because reading certificates takes a while."""
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
    """Return a request with the usual headers; a name and password in the URL become a header."""
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
    """Parse a URL. Its text stays out of messages: the whole URL may be a secret, and a part would not be recognised as
    such.
    """
    try:
        at = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        raise Refused("what is to be called is not a URL, and is not called") from None
    if at.scheme not in ("http", "https") or not at.host:
        raise Refused("what is to be called is not a URL of http or https, and is not called")
    return at


def _next(request: OutboundRequest, answer: OutboundAnswer) -> OutboundRequest | None:
    """Return the request that a redirect asks for, or None. Raises Refused for a redirect that is not followed."""
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
        remedy = "Call that URL itself"
        raise Refused(f"{request.url.host} redirects a body to {url.host}, which is not followed. {remedy}")
    kept = {name: value for name, value in following.headers.items() if name in _HARMLESS or name == "host"}
    return OutboundRequest(method, url, kept, content)


def _without_body(headers: dict[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in headers.items() if not name.startswith("content-"))


def _is_same(one: OutboundRequest, other: OutboundRequest) -> bool:
    """Return whether credentials of one request may be sent with the other: the same origin, or its upgrade to TLS."""
    if one.origin == other.origin:
        return True
    to_tls = one.origin[0] == "http" and one.origin[2] == 80 and other.origin[0] == "https" and other.origin[2] == 443
    return to_tls and one.url.host == other.url.host


def _decoder(encoding: str) -> Any:
    """Return a decompressor for the requested encoding; bodies in any other encoding stay as they are."""
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16) if encoding in ("gzip", "x-gzip") else None
