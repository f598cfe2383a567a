"""The worker's calls over HTTP to one of several servers."""

import os
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from random import Random
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import SECOND, Clock, SystemClock
from horae.errors import (
    BadInput,
    Busy,
    Conflict,
    Forbidden,
    HoraeError,
    NotFound,
    ProtocolMismatch,
    TooLarge,
    Unauthorized,
)
from horae.model.fleet.protocol import (
    Answer,
    Await,
    Awaited,
    Exchange,
    KnownSteps,
    Reattach,
    Reattached,
    Register,
    Registered,
    Remember,
    Remembered,
)
from horae.model.fleet.submit import ChildSubmit
from horae.worker.code.artifacts import read_pieces
from horae.worker.code.execution_requests import ArtifactReceipt, ChildReceipt, UploadArtifact
from horae.worker.http_client import ClientResponse, ServerConnections

SLACK = 3.0  # seconds that an answer may take beyond the time for which the server may hold it back
CALL_TIMEOUT = 15.0
AWAY = 60.0  # seconds with announced servers before the configured servers are tried again
MISDIRECTED = 421
SLOWEST = 100_000  # bytes per second: a file that is uploaded at least this fast does not time out
_ROOT = "/api/v1/sessions"
_BY_STATUS: dict[int, type[HoraeError]] = {
    400: BadInput,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    426: ProtocolMismatch,
    429: Busy,
    503: Busy,
}


class _Page(Struct):
    items: list[ChildReceipt]


class HttpTransport:
    """Sends the calls of a worker to one server. When this server fails, it changes to another known server.

    The other server is chosen at random, so that the workers of a failed server spread over the remaining servers. No
    server is tried twice before all were tried. Configured servers are preferred to announced servers, which are known
    only from a server's answer: a configured load balancer is bypassed only while it does not answer. After a while
    with announced servers, the configured servers are tried again.
    """

    def __init__(
        self,
        servers: Sequence[str],
        key: str,
        tls: ssl.SSLContext | None = None,
        *,
        namespace: str = "",
        rng: Random,
        clock: Clock | None = None,
    ) -> None:
        self._tls, self._namespace = tls, namespace
        self._rng, self._clock = rng, clock or SystemClock()
        self._installation = ""
        self._home_at: float | None = None  # when the configured servers are tried again
        self._failed: set[ServerConnections] = set()  # servers that failed since the last answer
        self._key = key
        self._lines: list[ServerConnections] = []
        self._at = 0
        self._answer = msgspec.json.Decoder(Answer)
        self.add_servers(servers)
        self._named = frozenset(self._lines)
        if not self._lines:
            raise BadInput("A worker needs a server.", "Name one with --server or HORAE_URL.", field="server")

    @property
    def servers(self) -> list[str]:
        """Return the URLs of all known servers, the current server first."""
        return [line.url for line in self._lines[self._at :] + self._lines[: self._at]]

    async def register(self, body: Register) -> Registered:
        registered = _read(await self._call("POST", _ROOT, msgspec.json.encode(body)), Registered)
        if registered.installation is not None:
            self._installation = str(registered.installation)
            for line in self._lines:
                line.installation = self._installation
        return registered

    async def exchange(self, session: UUID, body: Exchange) -> Answer:
        timeout = body.wait / SECOND + SLACK
        reply = await self._call("POST", f"{_ROOT}/{session}/exchange", msgspec.json.encode(body), timeout)
        try:
            return self._answer.decode(reply.body)
        except msgspec.MsgspecError as error:
            raise Busy(f"The server's answer cannot be read: {error}.") from None

    async def reattach(self, session: UUID, body: Reattach) -> Reattached:
        return _read(await self._call("POST", f"{_ROOT}/{session}/reattach", msgspec.json.encode(body)), Reattached)

    async def submit_children(self, session: UUID, body: ChildSubmit) -> list[ChildReceipt]:
        reply = await self._call("POST", f"{_ROOT}/{session}/executions", msgspec.json.encode(body))
        return _read(reply, _Page).items

    async def remember(self, session: UUID, body: Remember) -> Remembered:
        reply = await self._call("POST", f"{_ROOT}/{session}/steps", msgspec.json.encode(body))
        return _read(reply, Remembered)

    async def known_steps(self, session: UUID, parcel: UUID, item: int, after: str) -> KnownSteps:
        query = f"parcel={parcel}&item={item}" + (f"&after={quote(after, safe='')}" if after else "")
        return _read(await self._call("GET", f"{_ROOT}/{session}/steps?{query}", b""), KnownSteps)

    async def wait_for_signal(self, session: UUID, body: Await) -> Awaited:
        reply = await self._call("POST", f"{_ROOT}/{session}/awaits", msgspec.json.encode(body))
        return _read(reply, Awaited)

    async def upload_artifact(
        self, session: UUID, parcel: UUID, item: int, attempt: int, file: UploadArtifact
    ) -> ArtifactReceipt:
        query = f"parcel={parcel}&item={item}&attempt={attempt}"
        path = f"{_ROOT}/{session}/artifacts/{quote(file.name)}?{query}"
        size = os.stat(file.path).st_size
        timeout = CALL_TIMEOUT + size / SLOWEST

        async def upload(line: ServerConnections) -> ClientResponse:
            return await line.upload(path, read_pieces(file), size, file.media, self._key, timeout)

        return _read(await self._send(upload), ArtifactReceipt)

    async def close_session(self, session: UUID) -> None:
        await self._call("DELETE", f"{_ROOT}/{session}", b"")

    def add_servers(self, servers: Sequence[str]) -> None:
        known = {line.url for line in self._lines}
        for url in servers:
            url = url.rstrip("/")
            if url not in known and url.startswith(("http://", "https://")):
                known.add(url)
                line = ServerConnections(url, self._tls, self._namespace)
                line.installation = self._installation
                self._lines.append(line)

    async def close(self) -> None:
        for line in self._lines:
            line.close()

    async def _call(self, method: str, path: str, body: bytes, timeout: float = CALL_TIMEOUT) -> ClientResponse:
        return await self._send(lambda line: line.request(method, path, body, self._key, timeout))

    async def _send(self, request: Callable[[ServerConnections], Awaitable[ClientResponse]]) -> ClientResponse:
        self._go_home()
        line = self._lines[self._at]
        try:
            reply = await request(line)
        except (OSError, TimeoutError) as error:
            self._turn_from(line)
            raise Busy(f"{line.url} does not answer ({str(error) or type(error).__name__}).") from None
        if reply.status < 300:
            self._failed.clear()
            return reply
        if reply.status >= 500 or reply.status == MISDIRECTED:
            self._turn_from(line)
        refusal = error_of(reply)
        if reply.status == MISDIRECTED:  # the call is valid, but another server must take it
            raise Busy(f"{line.url} is not a server of this worker: {refusal}")
        raise refusal

    def _turn_from(self, line: ServerConnections) -> None:
        """Choose another server, unless a concurrent call has done so."""
        self._failed.add(line)
        if self._lines[self._at] is not line:
            return
        if self._failed.issuperset(self._lines):
            self._failed = {line}
        left = [i for i, other in enumerate(self._lines) if other not in self._failed]
        named = [i for i in left if self._lines[i] in self._named]
        self._at = self._rng.choice(named or left) if left else self._at
        away = self._lines[self._at] not in self._named
        self._home_at = self._clock.monotonic() + AWAY if away else None

    def _go_home(self) -> None:
        """Change back to a configured server after a while with announced servers."""
        if self._home_at is not None and self._clock.monotonic() >= self._home_at:
            self._failed -= self._named
            self._home_at = None
            self._at = self._rng.choice([i for i, line in enumerate(self._lines) if line in self._named])


def error_of(reply: ClientResponse) -> HoraeError:
    """Return the error that a server's answer represents."""
    problem = _problem(reply)
    slug = str(problem.get("type", "")).rpartition(":")[2]
    kinds = {kind.slug: kind for kind in reversed(list(_kinds(HoraeError)))}  # the most general class of equal slugs
    kind = kinds.get(slug) or _BY_STATUS.get(reply.status, BadInput if reply.status < 500 else HoraeError)
    detail = str(problem.get("detail") or problem.get("title") or f"The server answered {reply.status}.")
    remedy = str(problem.get("remedy") or "")
    if issubclass(kind, Busy):
        after = reply.headers.get("retry-after", "")
        return kind(detail, remedy, retry_after=int(after) if after.isdecimal() else 1)
    index = problem.get("index")
    return kind(detail, remedy, index=index) if isinstance(index, int) else kind(detail, remedy)


def _problem(reply: ClientResponse) -> dict[str, Any]:
    try:
        problem = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return problem if isinstance(problem, dict) else {}


def _kinds(root: type[HoraeError]) -> Iterator[type[HoraeError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)


T = TypeVar("T")


def _read(reply: ClientResponse, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except msgspec.MsgspecError as error:
        raise HoraeError(
            f"The server's answer cannot be read: {error}.", "Check that worker and server have the same version."
        ) from None
