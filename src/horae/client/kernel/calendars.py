"""`client.calendars`: named, versioned sets of times for triggers and windows."""

from datetime import datetime
from typing import Any

from horae.client.encode import instant
from horae.client.kernel.jobs import Outcome
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument, ResultPage, page_of
from horae.errors import NotFound


class CalendarInfo(ApiDocument, frozen=True, kw_only=True):
    """A calendar: its definition, and whether it is open now."""

    name: str
    version: int | None = None
    description: str = ""
    definition: dict[str, Any] | None = None
    text: str = ""  # the definition in words
    open: bool | None = None  # whether it is open now
    opens_at: datetime | None = None
    closes_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None  # None for the current version
    notes: tuple[str, ...] = ()


class CalendarsResource(Resource):
    """Write, read, delete and preview calendars."""

    async def apply(self, document: dict[str, Any]) -> tuple[CalendarInfo, Outcome]:
        """Create or change a calendar to match a document; return it with the outcome."""
        name = document.get("name", "")
        try:
            before = await self.get(name)
        except NotFound:
            return await self.put(name, document), "created"
        after = await self.put(name, document)
        return after, "unchanged" if after.version == before.version else "changed"

    # `python -m tools.sdk` writes the methods below, from the routes of calendars (create: none).

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> ResultPage[CalendarInfo]:
        """List calendars, sorted by name."""
        return page_of(CalendarInfo, await self._caller.get(path_of("calendars"), {"limit": limit, "cursor": cursor}))

    async def get(self, name: str, *, at: datetime | str | None = None) -> CalendarInfo:
        """Read a calendar, in its present or an earlier version, with the triggers that use it.

        `at`: The version that was valid at this time; the present by default.
        """
        return CalendarInfo.of(await self._caller.get(path_of("calendars", name), {"at": instant(at)}))

    async def put(self, name: str, definition: dict[str, Any], *, if_match: str | None = None) -> CalendarInfo:
        """Create a calendar or replace its definition; a change makes a new version and takes effect at once."""
        return CalendarInfo.of(await self._caller.edit("PUT", path_of("calendars", name), definition, if_match))

    async def delete(self, name: str) -> None:
        """Delete an unused calendar; its versions stay readable."""
        await self._caller.delete(path_of("calendars", name))

    async def versions(self, name: str) -> ResultPage[CalendarInfo]:
        """List a calendar's versions, newest first, even after its deletion."""
        return page_of(CalendarInfo, await self._caller.get(path_of("calendars", name, "versions")))

    async def openings(
        self, name: str, *, since: datetime | str | None = None, until: datetime | str | None = None,
        at: datetime | str | None = None, limit: int | None = None, cursor: str | None = None,
    ) -> ResultPage[ApiDocument]:  # fmt: skip
        """List the opening times of a calendar between two instants.

        `since`: The start of the list; now by default. `until`: The end of the list; a year later by default.
        `at`: Use the version that was valid at this time.
        """
        query = {"from": instant(since), "to": instant(until), "at": instant(at), "limit": limit, "cursor": cursor}
        return page_of(ApiDocument, await self._caller.get(path_of("calendars", name, "openings"), query))
