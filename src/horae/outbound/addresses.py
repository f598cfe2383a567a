"""Decide whether an address is public: tables of non-public networks, and of formats that embed other addresses.

The functions are pure, and do not depend on the tables in the installed version of the standard library.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_V4 = {
    "0.0.0.0/8": "unspecified (it means this machine)",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "in the internal network of a carrier",
    "127.0.0.0/8": "this machine itself (loopback)",
    "168.63.129.16/32": "a service of Azure for its own machines",
    "169.254.0.0/16": "link-local, where clouds offer the credentials of machines",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "reserved",
    "192.0.2.0/24": "reserved for documentation",
    "192.88.99.0/24": "reserved",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "reserved for measurements",
    "198.51.100.0/24": "reserved for documentation",
    "203.0.113.0/24": "reserved for documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
}
_V6 = {
    "::/128": "unspecified (it means this machine)",
    "::1/128": "this machine itself (loopback)",
    "2001::/23": "reserved, or a tunnel",
    "2001:db8::/32": "reserved for documentation",
    "3fff::/20": "reserved for documentation",
    "fc00::/7": "private (unique local)",
    "fe80::/10": "link-local",
    "fec0::/10": "private (site-local)",
    "ff00::/8": "multicast",
}
_TABLE: dict[int, list[tuple[Network, str]]] = {
    version: [(ip_network(text), why) for text, why in table.items()] for version, table in ((4, _V4), (6, _V6))
}
_GLOBAL = IPv6Network("2000::/3")  # all public IPv6 addresses that were ever assigned

# The addresses that the entry `private` of the setting allows are those in PRIVATE, except those in METADATA, at which
# clouds hand out the credentials of machines.
PRIVATE: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "::1/128", "fc00::/7")
)
METADATA: tuple[Network, ...] = tuple(
    ip_network(text) for text in ("100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::/32", "fd00:42::42/128")
)

# Formats of IPv6 addresses that embed the IPv4 address at which packets arrive: the network of the format, and the
# number of bits that follow the IPv4 address.
_CARRIERS = (
    (IPv6Network("::ffff:0:0/96"), 0),  # v4-mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
)
_ISATAP = (0x5EFE, 0x02005EFE)  # the 32 bits before the IPv4 address that ISATAP embeds


def reason_not_public(address: Address) -> str | None:
    """Return the reason why an address is not public, or None if it is."""
    for network, why in _TABLE[address.version]:
        if address in network:
            return why
    if isinstance(address, IPv6Address) and address not in _GLOBAL:
        return "reserved"
    return None


def target_addresses(address: Address) -> Iterator[Address]:
    """Yield the addresses at which packets to an address may arrive: the address itself, or one that it embeds."""
    if isinstance(address, IPv4Address):
        yield address
        return
    bare = IPv6Address(int(address))  # without its scope id
    for network, shift in _CARRIERS:
        if bare in network:
            yield IPv4Address(int(bare) >> shift & 0xFFFFFFFF)
            return
    yield bare
    if int(bare) >> 32 & 0xFFFFFFFF in _ISATAP:
        yield IPv4Address(int(bare) & 0xFFFFFFFF)
