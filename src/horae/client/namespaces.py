"""`client.namespaces`: what namespaces may have and use, and what they used."""

from datetime import datetime
from typing import Any

from horae.client.calls import Caller, path_of
from horae.client.encode import instant
from horae.client.views import Page, View, page_of

DEFAULT = "default"


class Namespaces:
    """Quotas and usage; a key is for one namespace."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def list(self) -> Page[View]:
        """The namespaces that this client's key is for."""
        return page_of(View, await self._caller.get(path_of("namespaces")))

    async def quota(self, name: str = DEFAULT) -> View:
        """What a namespace may have and use."""
        return View.of(await self._caller.get(path_of("namespaces", name, "quota")))

    async def set_quota(self, name: str = DEFAULT, **bounds: Any) -> View:
        """Say what a namespace may have and use, in the API's spelling; what is left out is without a bound."""
        return View.of(await self._caller.edit("PUT", path_of("namespaces", name, "quota"), bounds))

    async def usage(
        self, name: str = DEFAULT, *, since: datetime | str | None = None, until: datetime | str | None = None
    ) -> View:
        """What a namespace has now, and used by day."""
        query = {"from": instant(since), "to": instant(until)}
        return View.of(await self._caller.get(path_of("namespaces", name, "usage"), query))
