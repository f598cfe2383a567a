"""The hosts of a URL. Each is tried with its own timeout, beginning with the host that served last."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

T = TypeVar("T")
Try = Callable[[str], Awaitable[T]]


class NotPrimary(Exception):
    """The host answers, but is not the primary."""


def urls_of(url: str) -> list[str]:
    """Divide a URL with several hosts into URLs with one host each, in the same order."""
    parts = urlsplit(url)
    who, at, named = parts.netloc.rpartition("@")
    if named:
        return [urlunsplit(parts._replace(netloc=f"{who}{at}{host}")) for host in named.split(",")]
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    hosts = query.get("host", "").split(",")
    ports = query.get("port", "").split(",")
    if len(hosts) == 1 or len(ports) not in (1, len(hosts)):
        return [url]
    ports = ports if len(ports) == len(hosts) else ports * len(hosts)
    each = [{**query, "host": host, "port": port} for host, port in zip(hosts, ports, strict=True)]
    kept = [urlencode({name: value for name, value in one.items() if name != "port" or value}) for one in each]
    return [f"{parts.scheme}://{parts.path}?{text}" for text in kept]


class Hosts:
    """The hosts of one URL, beginning with the host that served last."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._urls: list[str] = []

    @property
    def served(self) -> str:
        """The URL of the host that served last."""
        return self._in_order()[0]

    async def first(self, attempt: Try[T]) -> T:
        """Try the hosts in order, and return the result of the first one that serves.

        If none serves, raise the error that says most about the cause.
        """
        errors: list[Exception] = []
        for url in self._in_order():
            try:
                found = await attempt(url)
            except Exception as error:
                errors.append(error)
            else:
                self._prefer(url)
                return found
        raise min(errors, key=_information_rank)

    async def any(self, attempt: Try[object]) -> None:
        """Try all hosts at once until one serves. Raises when a host refuses the connection, or when all fail."""
        tries = [asyncio.ensure_future(self._named(url, attempt)) for url in self._in_order()]
        errors: list[Exception] = []
        try:
            for done in asyncio.as_completed(tries):
                try:
                    return self._prefer(await done)
                except Exception as error:
                    if _information_rank(error) == 0:
                        raise
                    errors.append(error)
        finally:
            for one in tries:
                one.cancel()
            await asyncio.gather(*tries, return_exceptions=True)
        raise min(errors, key=_information_rank)

    async def _named(self, url: str, attempt: Try[object]) -> str:
        await attempt(url)
        return url

    def _in_order(self) -> list[str]:
        if not self._urls:
            self._urls = urls_of(self._url)  # raises ValueError for an invalid URL, at its first use
        return list(self._urls)

    def _prefer(self, url: str) -> None:
        if self._urls[0] != url:
            self._urls.remove(url)
            self._urls.insert(0, url)


def _information_rank(error: Exception) -> int:
    """Return the rank of an error by how much it says about the cause.

    0 is the refusal of a host that answers, 1 a server that is starting or stopping, 2 a host without an answer, and 3
    a standby.
    """
    if isinstance(error, NotPrimary | asyncpg.exceptions.TargetServerAttributeNotMatched):
        return 3
    if isinstance(error, asyncpg.CannotConnectNowError):
        return 1
    return 2 if isinstance(error, OSError) else 0
