"""Addresses that may be called besides public ones: the setting `outbound_allow`."""

import re
from collections.abc import Iterable
from ipaddress import ip_network

from msgspec import Struct

from horae.errors import BadInput
from horae.outbound.addresses import METADATA, PRIVATE, Address, Network, reason_not_public, target_addresses

SETTING = "outbound_allow"
_NAME = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?")
_HOW = 'Write addresses ("10.1.2.3"), networks ("10.0.0.0/8"), hosts ("db.internal", "*.internal") or "private".'


class AllowedAddresses(Struct, frozen=True):
    """The addresses and hosts that a setting allows in addition to public addresses."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()  # ".internal" for the entry "*.internal"
    private: bool = False  # whether the setting has the entry "private"

    @classmethod
    def read(cls, entries: Iterable[str], setting: str = SETTING) -> "AllowedAddresses":
        """Parse the entries of the setting `setting`. Raises BadInput."""
        networks, hosts, suffixes, private = [], set(), [], False
        for entry in entries:
            network = _network(entry)
            if entry == "private":
                private = True
            elif network is not None:
                networks.append(network)
            elif not _NAME.fullmatch(entry) or entry.rpartition(".")[2].isdecimal():
                raise BadInput(f"{setting}: {entry!r} is neither an address nor a host.", _HOW, field=setting)
            elif entry.startswith("*."):
                suffixes.append(entry[1:].lower().rstrip("."))
            else:
                hosts.add(entry.lower().rstrip("."))
        return cls(tuple(networks), frozenset(hosts), tuple(suffixes), private)

    def has_host(self, host: str) -> bool:
        """Return whether the setting names a host; then all addresses of the host may be called."""
        name = host.lower().rstrip(".")
        return name in self.hosts or name.endswith(self.suffixes)

    def refusal_of(self, address: Address) -> str | None:
        """Return the reason why an address may not be called, or None if it may."""
        if self._has(address):
            return None
        reasons = ((target, reason_not_public(target)) for target in target_addresses(address))
        return next((why for target, why in reasons if why is not None and not self._has(target)), None)

    def _has(self, address: Address) -> bool:
        if any(address in network for network in self.networks):
            return True
        return self.private and _in(address, PRIVATE) and not _in(address, METADATA)


def _in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def _network(entry: str) -> Network | None:
    try:
        return ip_network(entry, strict=False)
    except ValueError:
        return None
