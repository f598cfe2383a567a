"""Calls over the network, to the first of several servers that answers."""

import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from horae.client.local import is_loopback
from horae.client.loops import FORK_LOCK, PerLoop
from horae.client.transport.transport import ApiRequest, ApiResponse, StreamedResponse, Unanswered
from horae.client.transport.trust import trust

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT = 5.0
IMPATIENCE = 4  # with several servers, the next one is tried after the timeout divided by this


class HttpClientTransport:
    """A transport that sends to one URL until it fails, then to the next one.

    Each event loop has its own connections.
    """

    def __init__(self, urls: Sequence[str], trusting: Callable[[], ssl.SSLContext] = trust) -> None:
        self._urls, self._trust = [url.rstrip("/") for url in urls], trusting
        self._at = 0
        self._trusted: ssl.SSLContext | bool | None = None
        self._http = PerLoop(_disconnect)

    @property
    def place(self) -> str:
        return self._urls[self._at]

    def _verify(self) -> ssl.SSLContext | bool:
        """Return the certificates to trust. All loops share them: reading them takes longer than many calls."""
        if self._trusted is None:
            self._trusted = self._trust() if any(url.startswith("https:") for url in self._urls) else False
        return self._trusted

    def _connect(self) -> "httpx2.AsyncClient":
        """Import httpx2 and create its client.

        The import takes long, so the first call does it, together with all modules that httpx2 loads later. A fork
        waits for this, too: the client creates an SSL context, and a child that inherits a lock of OpenSSL hangs.
        """
        with FORK_LOCK:
            import httpx2

            for module in ("httpcore2", "httpcore2._backends.anyio", "anyio._backends._asyncio"):
                import_module(module)
            return httpx2.AsyncClient(
                verify=self._verify(),
                trust_env=not all(map(is_loopback, self._urls)),  # a proxy cannot reach a server on this machine
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
            )

    async def send(self, call: ApiRequest) -> ApiResponse:
        http, at = await self._http.here(self._connect), self._at
        try:
            response = await http.send(self._request(http, call, self._patience(call)))
        except Exception as error:
            raise self._unanswered(error, at) from error
        if response.status_code in (502, 503, 504):
            self._leave(at)
        return ApiResponse(status=response.status_code, headers=dict(response.headers), body=response.content)

    @asynccontextmanager
    async def open(self, call: ApiRequest) -> AsyncIterator[StreamedResponse]:
        http, at = await self._http.here(self._connect), self._at
        try:
            response = await http.send(self._request(http, call, call.timeout), stream=True)
        except Exception as error:
            raise self._unanswered(error, at) from error
        try:
            headers = dict(response.headers)
            yield StreamedResponse(status=response.status_code, headers=headers, chunks=self._chunks(response, at))
        finally:
            await response.aclose()

    async def close(self) -> None:
        await self._http.close()

    def _patience(self, call: ApiRequest) -> float:
        """Return the seconds to wait for an answer: fewer if another server can be asked without a second effect."""
        may_repeat = call.method in ("GET", "HEAD") or "idempotency-key" in call.headers
        return call.timeout / IMPATIENCE if may_repeat and len(self._urls) > 1 else call.timeout

    def _request(self, http: "httpx2.AsyncClient", call: ApiRequest, seconds: float) -> "httpx2.Request":
        import httpx2

        return http.build_request(
            call.method, self.place + call.path, headers=call.headers, content=call.body or None,
            timeout=httpx2.Timeout(seconds, connect=CONNECT_TIMEOUT),
        )  # fmt: skip

    async def _chunks(self, response: "httpx2.Response", at: int) -> AsyncIterator[bytes]:
        parts = response.aiter_bytes()
        try:
            async for chunk in parts:
                yield chunk
        except Exception as error:
            raise self._unanswered(error, at) from error
        finally:
            if close := getattr(parts, "aclose", None):
                await close()

    def _unanswered(self, error: Exception, at: int) -> Exception:
        """Return the exception to raise: `Unanswered` for a network error, any other error unchanged."""
        import httpx2

        if not isinstance(error, httpx2.TransportError):
            return error
        self._leave(at)
        sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        return Unanswered(str(error) or type(error).__name__, sent=sent)

    def _leave(self, at: int) -> None:
        """Let later calls begin with the next server. If several calls fail at one server, only the first does this."""
        if self._at == at:
            self._at = (at + 1) % len(self._urls)


async def _disconnect(http: "httpx2.AsyncClient") -> None:
    await http.aclose()
