"""Calendars: named, versioned sets of times for triggers."""

from typing import Annotated, Any

from msgspec import Meta, field

from horae.errors import Conflict, NotFound, Stale
from horae.model.base.view import CompleteList, Page
from horae.model.fields.derived import body as body_of
from horae.model.triggers.calendars.read import FIELDS
from horae.model.triggers.calendars.view import CalendarView, OpeningView
from horae.server.access import EDIT, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody, When
from horae.server.reading.queries import Paged, Query
from horae.server.reply import Response, nothing, ok
from horae.server.route import API, CHANGES, REQUEST, delete, get, post, put
from horae.server.scopes import closed

IF_MATCH = {
    "If-Match": "The ETag of the calendar that was read: the edit is refused if the calendar has changed since."
}


CalendarBody = body_of(
    FIELDS,
    "CalendarBody",
    "The opening times of a calendar: one of country, exchange, dates, hours, windows, calendar, any and all.",
    RequestBody,
)
NewCalendar = body_of(FIELDS, "NewCalendar", "A new calendar.", RequestBody, needed=("name",))


class CalendarQuery(Query, frozen=True, kw_only=True):
    """The version to read."""

    at: Annotated[When, Meta(description="The version that was valid at this time; the present by default.")] | None = (
        None
    )


class OpeningsQuery(Paged, frozen=True, kw_only=True):
    """The openings to list."""

    since: Annotated[When, Meta(description="The start of the list; now by default.")] | None = field(
        name="from", default=None
    )
    until: Annotated[When, Meta(description="The end of the list; a year later by default.")] | None = field(
        default=None, name="to"
    )
    at: Annotated[When, Meta(description="Use the version that was valid at this time.")] | None = None


def _shown(calendar: CalendarView, status: int = 200) -> Response:
    location = f"{API}/calendars/{calendar.name}" if status == 201 else None
    return ok(calendar, status, location=location, version=calendar.version)


@post(
    f"{API}/calendars", "calendars.create", CalendarView,
    access=EDIT, scope=closed, audit=REQUEST, status=201, takes=NewCalendar, refuses=(Conflict,),
)  # fmt: skip
async def create(call: ApiCall, body: dict[str, Any]) -> Response:
    """Create a calendar."""
    return _shown(await call.node.definitions.calendars.create(call.namespace, body), 201)


@get(f"{API}/calendars", "calendars.list", Page[CalendarView], access=VIEW, scope=closed)
async def list_calendars(call: ApiCall, query: Paged) -> Response:
    """List calendars, sorted by name."""
    return ok(await call.node.definitions.calendars.list(call.namespace, limit=query.limit, cursor=query.cursor))


@get(f"{API}/calendars/{{name}}", "calendars.get", CalendarView, access=VIEW, scope=closed, refuses=(NotFound,))
async def get_calendar(call: ApiCall, query: CalendarQuery) -> Response:
    """Read a calendar, in its present or an earlier version, with the triggers that use it."""
    return _shown(await call.node.definitions.calendars.get(call.namespace, call.path("name"), query.at))


@put(
    f"{API}/calendars/{{name}}", "calendars.put", {200: CalendarView, 201: CalendarView},
    access=EDIT, scope=closed, audit=CHANGES, takes=CalendarBody, headers=IF_MATCH, refuses=(Stale, Conflict),
)  # fmt: skip
async def put_calendar(call: ApiCall, body: dict[str, Any]) -> Response:
    """Create a calendar or replace its definition; a change makes a new version and takes effect at once."""
    view, change = await call.node.definitions.calendars.put(
        call.namespace, call.path("name"), body, if_match=call.if_match()
    )
    return _shown(view, 201 if change == "created" else 200)


@delete(
    f"{API}/calendars/{{name}}", "calendars.delete",
    access=EDIT, scope=closed, audit=CHANGES, headers=IF_MATCH, refuses=(NotFound, Conflict, Stale),
)  # fmt: skip
async def delete_calendar(call: ApiCall) -> Response:
    """Delete an unused calendar; its versions stay readable."""
    await call.node.definitions.calendars.delete(call.namespace, call.path("name"), if_match=call.if_match())
    return nothing()


@get(
    f"{API}/calendars/{{name}}/versions", "calendars.versions", CompleteList[CalendarView],
    access=VIEW, scope=closed, refuses=(NotFound,),
)  # fmt: skip
async def versions(call: ApiCall) -> Response:
    """List a calendar's versions, newest first, even after its deletion."""
    return ok(CompleteList(items=await call.node.definitions.calendars.versions(call.namespace, call.path("name"))))


@get(
    f"{API}/calendars/{{name}}/openings", "calendars.openings", Page[OpeningView],
    access=VIEW, scope=closed, refuses=(NotFound,),
)  # fmt: skip
async def openings(call: ApiCall, query: OpeningsQuery) -> Response:
    """List the opening times of a calendar between two instants."""
    page = await call.node.definitions.calendars.openings(
        call.namespace, call.path("name"), after=query.since, before=query.until, at=query.at, limit=query.limit,
        cursor=query.cursor,
    )  # fmt: skip
    return ok(page)
