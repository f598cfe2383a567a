"""Connections to checked addresses.

A name is resolved only here, and the socket connects to the checked address, so that no second lookup can lead
elsewhere. TLS and the Host header still use the name.
"""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any

import httpcore2

from horae.outbound.allow import SETTING, AllowedAddresses
from horae.outbound.threads import RESOLVER_THREADS, run_in


class Refused(Exception):
    """An error for an address that may not be called; nothing was sent to it."""


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Resolves a name, checks all of its addresses, and connects to one of them."""

    def __init__(self, allowed: AllowedAddresses) -> None:
        self._allowed = allowed
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = await self.checked(host, port, timeout)
        each = None if timeout is None else timeout / len(addresses)
        problem: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, each, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
        raise problem

    async def connect_unix_socket(self, path: str, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
        raise Refused("Unix sockets of this machine may not be called")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    async def checked(self, host: str, port: int, timeout: float | None) -> list[str]:
        """Resolve a host and return its addresses. `timeout` is in seconds.

        Raises Refused if any of them may not be called, because a name with such an address may be an attack.
        """
        try:
            async with asyncio.timeout(timeout):
                found = await run_in(RESOLVER_THREADS, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"the name {host} was not resolved in time") from None
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"the name {host} cannot be resolved: {error}") from None
        addresses = list(dict.fromkeys(_literal(place) for *_, place in found))
        if not self._allowed.has_host(host):
            for address in addresses:
                why = self._allowed.refusal_of(ip_address(address))
                if why is not None:
                    raise Refused(refusal(host, address, why))
        return addresses


def refusal(host: str, address: str, why: str) -> str:
    """Return the message for a refused host; it names the setting that would allow the address."""
    subject = address if host == address else f"{host} is {address}, which"
    return (
        f"{subject} is {why}, so it may not be called. To allow it, add it to the setting {SETTING}:"
        f" HORAE_{SETTING.upper()}={address}"
    )


def _literal(place: tuple[Any, ...]) -> str:
    """Return the IP address of a socket address as text; a link-local address includes its interface."""
    host, scope = str(place[0]), place[3] if len(place) > 3 else 0
    return f"{host}%{scope}" if scope and "%" not in host else host
