"""Proxies in front of the server: decides whether to trust their `X-Forwarded-*` headers about clients."""

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from horae.errors import BadInput
from horae.server.http.fields import HOST

LOOPBACK = ("127.0.0.0/8", "::1/128")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Proxies:
    """The addresses of trusted proxies, their maximum number in a row, and the host names of this server."""

    def __init__(self, trusted: Iterable[str] = LOOPBACK, hops: int = 1, hosts: Collection[str] = ()) -> None:
        """Take the settings. With `hosts`, the application refuses requests for other host names."""
        self._trusted = [_network(text) for text in trusted]
        self._hops, self.hosts = hops, frozenset(host.lower() for host in hosts)

    def trusts(self, address: str) -> bool:
        """Return whether an address belongs to a trusted proxy."""
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self._trusted)

    def client(self, scope: Mapping[str, Any]) -> str:
        """Return the client's address: the connection's peer, or the address that trusted proxies name.

        Each proxy appends the address of its peer to X-Forwarded-For. So the entries are read from the right, and an
        entry counts if the sender that appended it is trusted. A client can write any text to the left of them.
        """
        address = peer_of(scope)
        named = [text for name, text in scope["headers"] if name == b"x-forwarded-for"]
        entries = b",".join(named).decode("latin-1").split(",") if named else []
        for _ in range(self._hops):
            seen = parse_address(entries.pop()) if entries and self.trusts(address) else None
            if seen is None:
                break
            address = str(seen)
        return address

    def is_secure(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
        """Return whether the client's connection is encrypted, to this server or to a trusted proxy."""
        if scope["scheme"] == "https":
            return True
        return headers.get(b"x-forwarded-proto") == b"https" and self.trusts(peer_of(scope))

    def host(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> str:
        """Return the name and port in the client's request; empty if it has none."""
        forwarded = headers.get(b"x-forwarded-host")
        if forwarded is not None and HOST.fullmatch(forwarded) and self.trusts(peer_of(scope)):
            return forwarded.decode("latin-1")
        return headers.get(b"host", b"").decode("latin-1")

    def is_own_host(self, scope: Mapping[str, Any]) -> bool:
        """Return whether a request is for one of this server's names, with or without a port."""
        host = self.host(scope, dict(scope["headers"])).lower()
        return host in self.hosts or re.sub(r":\d+$", "", host) in self.hosts


def peer_of(scope: Mapping[str, Any]) -> str:
    """Return the address of the connection's peer."""
    address: str = (scope.get("client") or ("",))[0]
    parsed = parse_address(address)
    return address if parsed is None else str(parsed)


def parse_address(text: str) -> Address | None:
    """Parse an address, with or without a port; an IPv4 address in IPv6 becomes the IPv4 address."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if "%" in text:  # the zone after "%" may be any text
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        remedy = "Name addresses or networks, such as 10.0.0.5 or 10.0.0.0/8."
        raise BadInput(f'"{text}" is not a network: {error}.', remedy, field="trusted_proxies") from None
