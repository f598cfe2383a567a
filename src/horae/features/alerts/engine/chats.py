"""Notices to chats, pagers and phones, sent through the library apprise.

Apprise opens its own connections, so its URLs are checked before: the hosts must be ones that this server may call. A
URL is refused if it would make apprise read local files or call another host than the one in the URL. Apprise is told
not to follow redirects.
"""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from horae.errors import Conflict
from horae.features.alerts.model.channel_kinds import unsafe_in
from horae.outbound.backend import Refused
from horae.outbound.fetch import Outbound
from horae.outbound.threads import APPRISE_THREADS, run_in

WITHIN = 18.0  # seconds for one URL, which are fewer than for one try, so that a slow URL does not fail the others
RESOLVED_WITHIN = 10.0  # seconds to resolve a name
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


async def notify(outbound: Outbound, urls: Sequence[str], title: str, text: str) -> str:
    """Send a notice to all URLs. If only some got it, return a remark: another try would repeat it to these.

    If none got it, raises Undeliverable, or Refused for an address that this server may not call.
    """
    library = await run_in(APPRISE_THREADS, apprise)
    tries = [_notify_one(library, outbound, url, title, text) for url in urls]
    errors = [one for one in await asyncio.gather(*tries, return_exceptions=True) if one is not None]
    if not errors:
        return ""
    if len(errors) == len(urls):
        # An error that another try may avoid, if there is one.
        raise min(errors, key=lambda error: isinstance(error, Undeliverable) and error.final)
    said = str(errors[0]) or "the delivery took too long"
    return f"{len(errors)} of {len(urls)} URLs did not get the notice: {said}"


async def _notify_one(library: Any, outbound: Outbound, url: str, title: str, text: str) -> None:
    async with asyncio.timeout(WITHIN):
        asset = library.AppriseAsset(http_redirects=False)
        teller = library.Apprise(asset=asset)
        teller.add(await _service(library, asset, outbound, url))
        if not await run_in(APPRISE_THREADS, lambda: teller.notify(title=title, body=text)):
            raise Undeliverable("apprise failed for a URL")


async def _service(library: Any, asset: Any, outbound: Outbound, url: str) -> Any:
    """Return apprise's object for the service of a URL. Raises Undeliverable if the URL is unsafe or not supported."""
    why = unsafe_in(url)
    if why is not None:
        raise Undeliverable(f"a URL for apprise is refused: {why}", final=True)
    parts = urlsplit(url)
    redirects = "redirect" in parts.query.lower()
    # The first use of apprise takes long, because it loads all its services.
    made = await run_in(APPRISE_THREADS, lambda: None if redirects else library.Apprise.instantiate(url, asset=asset))
    if made is None:
        raise Undeliverable("apprise does not support one of the URLs, or the URL asks for redirects", final=True)
    for host in {parts.hostname or "", str(getattr(made, "host", None) or "")}:
        await _check(outbound, host.strip("[]"))
    return made


async def _check(outbound: Outbound, host: str) -> None:
    """Raise Refused for a host that this server may not call.

    A host that cannot be resolved is accepted, because many URLs of apprise have a token in place of the host.
    """
    try:
        await outbound.addresses(host, 443, RESOLVED_WITHIN)
    except Refused:
        raise
    except Exception:  # a token, not a host
        return
