"""Calls over the network, to the first of several servers that answers."""

import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from horae.client.local import is_loopback
from horae.client.transport import Call, Opened, Reply, Unanswered
from horae.client.trust import trust

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT = 5.0


class HttpTransport:
    """Sends to one URL until it fails to answer, then to the next one. Connections are kept open."""

    def __init__(self, urls: Sequence[str], trusting: Callable[[], ssl.SSLContext] = trust) -> None:
        self._urls, self._trust = [url.rstrip("/") for url in urls], trusting
        self._at = 0

    @property
    def place(self) -> str:
        return self._urls[self._at]

    @cached_property
    def _http(self) -> "httpx2.AsyncClient":
        """Made when first used: importing httpx2 and reading certificates take longer than many a call."""
        import httpx2

        return httpx2.AsyncClient(
            verify=self._trust() if any(url.startswith("https:") for url in self._urls) else False,
            trust_env=not all(map(is_loopback, self._urls)),  # a proxy never leads back to this machine
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
        )

    async def send(self, call: Call) -> Reply:
        request = self._request(call)
        try:
            response = await self._http.send(request)
        except Exception as error:
            raise self._unanswered(error) from error
        return Reply(status=response.status_code, headers=dict(response.headers), body=response.content)

    @asynccontextmanager
    async def open(self, call: Call) -> AsyncIterator[Opened]:
        request = self._request(call)
        try:
            response = await self._http.send(request, stream=True)
        except Exception as error:
            raise self._unanswered(error) from error
        try:
            headers = dict(response.headers)
            yield Opened(status=response.status_code, headers=headers, chunks=self._chunks(response))
        finally:
            await response.aclose()

    async def close(self) -> None:
        if "_http" in self.__dict__:
            await self._http.aclose()

    def _request(self, call: Call) -> "httpx2.Request":
        import httpx2

        timeout = httpx2.Timeout(call.timeout, connect=CONNECT_TIMEOUT)
        return self._http.build_request(
            call.method, self.place + call.path, headers=call.headers, content=call.body or None, timeout=timeout
        )

    async def _chunks(self, response: "httpx2.Response") -> AsyncIterator[bytes]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except Exception as error:
            raise self._unanswered(error) from error

    def _unanswered(self, error: Exception) -> Exception:
        """What to raise instead; an error that is not about the network is nobody's silence and stays itself."""
        import httpx2

        if not isinstance(error, httpx2.TransportError):
            return error
        self._at = (self._at + 1) % len(self._urls)
        sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        return Unanswered(str(error) or type(error).__name__, sent=sent)
