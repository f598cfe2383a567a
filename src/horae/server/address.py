"""Addresses: what is one, and which only this machine reaches."""

import ipaddress

LONGEST = 64  # characters, with the zone of one that is link-local


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_address(text: str) -> bool:
    """Whether a text is one, and not just anything that somebody wrote into a header."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return len(text) <= LONGEST
