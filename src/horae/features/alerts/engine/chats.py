"""Notices to chats, pagers and phones, sent through the library apprise.

Apprise opens its own connections, so its URLs are checked before: the hosts must be ones that this server may call. A
URL is refused if it would make apprise read local files or call another host than the one in the URL. Apprise is told
not to follow redirects.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from horae.errors import Conflict
from horae.features.alerts.model.channel_kinds import unsafe_in
from horae.outbound.backend import Refused
from horae.outbound.fetch import Outbound
from horae.outbound.threads import APPRISE_THREADS, run_in

WITHIN = 20.0  # seconds to resolve a name
MISSING = "apprise is not installed on this server."
INSTALL = "Install it with `pip install horae[notify]`, or use a channel of kind webhook or email."


class Undeliverable(Exception):
    """A notice was not delivered. With `final`, another try would not help."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


def apprise() -> Any:
    """Import and return the library, which is an optional dependency. Raises Conflict if it is not installed."""
    try:
        return import_module("apprise")
    except ImportError:
        raise Conflict(MISSING, INSTALL) from None


async def notify(outbound: Outbound, urls: Sequence[str], title: str, text: str) -> None:
    """Send a notice to all URLs. Raises Undeliverable, and Refused for an address that this server may not call."""
    library = apprise()
    asset = library.AppriseAsset(http_redirects=False)
    teller = library.Apprise(asset=asset)
    for url in urls:
        teller.add(await _service(library, asset, outbound, url))
    if not await run_in(APPRISE_THREADS, lambda: teller.notify(title=title, body=text)):
        raise Undeliverable("apprise failed for one or more URLs")


async def _service(library: Any, asset: Any, outbound: Outbound, url: str) -> Any:
    """Return apprise's object for the service of a URL. Raises Undeliverable if the URL is unsafe or not supported."""
    why = unsafe_in(url)
    if why is not None:
        raise Undeliverable(f"a URL for apprise is refused: {why}", final=True)
    parts = urlsplit(url)
    service = library.Apprise.instantiate(url, asset=asset) if "redirect" not in parts.query.lower() else None
    if service is None:
        raise Undeliverable("apprise does not support one of the URLs, or the URL asks for redirects", final=True)
    for host in {parts.hostname or "", str(getattr(service, "host", None) or "")}:
        await _check(outbound, host.strip("[]"))
    return service


async def _check(outbound: Outbound, host: str) -> None:
    """Raise Refused for a host that this server may not call.

    A host that cannot be resolved is accepted, because many URLs of apprise have a token in place of the host.
    """
    try:
        await outbound.addresses(host, 443, WITHIN)
    except Refused:
        raise
    except Exception:  # a token, not a host
        return
