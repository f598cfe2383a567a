"""`client.calendars`: named, versioned sets of times that triggers go by."""

from datetime import datetime
from typing import Any

from horae.client.encode import instant
from horae.client.kernel.jobs import Outcome
from horae.client.transport.calls import Caller, path_of
from horae.client.views import Page, View, page_of
from horae.errors import NotFound


class Calendar(View, frozen=True, kw_only=True):
    """A calendar: what it says, and how it stands now."""

    name: str
    version: int | None = None
    description: str = ""
    definition: dict[str, Any] | None = None
    text: str = ""
    open: bool | None = None
    opens_at: datetime | None = None
    closes_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    notes: tuple[str, ...] = ()


class Calendars:
    """Write, read and delete calendars, and look into them."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def put(self, name: str, definition: dict[str, Any], *, if_match: str | None = None) -> Calendar:
        """Make the calendar of this name be as the definition says, as the API spells it.

        With `if_match`, only if nobody changed it meanwhile. An equal one makes no version.
        """
        return Calendar.of(await self._caller.edit("PUT", path_of("calendars", name), definition, if_match))

    async def apply(self, document: dict[str, Any]) -> tuple[Calendar, Outcome]:
        """Make the calendar that a document names be as it says; tells what that changed."""
        name = document.get("name", "")
        try:
            before = await self.get(name)
        except NotFound:
            return await self.put(name, document), "created"
        after = await self.put(name, document)
        return after, "unchanged" if after.version == before.version else "changed"

    async def get(self, name: str, *, at: datetime | str | None = None) -> Calendar:
        """A calendar as it is, or as it was at an instant."""
        return Calendar.of(await self._caller.get(path_of("calendars", name), {"at": instant(at)}))

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[Calendar]:
        """A page of calendars, by name."""
        return page_of(Calendar, await self._caller.get(path_of("calendars"), {"limit": limit, "cursor": cursor}))

    async def versions(self, name: str) -> Page[Calendar]:
        return page_of(Calendar, await self._caller.get(path_of("calendars", name, "versions")))

    async def delete(self, name: str) -> None:
        """Delete a calendar that nothing goes by."""
        await self._caller.delete(path_of("calendars", name))

    async def openings(
        self,
        name: str,
        *,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        at: datetime | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[View]:
        """When a calendar is open: from now on and for a year unless told; `from` and `to` of each are in `raw`."""
        query = {"from": instant(after), "to": instant(before), "at": instant(at), "limit": limit, "cursor": cursor}
        return page_of(View, await self._caller.get(path_of("calendars", name, "openings"), query))
