"""Fires: what became of each nominal fire, and what is to come."""

from typing import Annotated, Literal

from msgspec import Meta, field

from horae.errors import BadInput, NotFound
from horae.model.triggers.fire_view import FireCountsView, FirePage
from horae.server.access import VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import When
from horae.server.reading.queries import Limit, Paged, Query, Text
from horae.server.reply import Response, ok
from horae.server.route import API, get
from horae.server.scopes import by_job_filter


class FireList(Paged, frozen=True, kw_only=True):
    """Which fires: in [from, to), by default from an hour ago to a day ahead; to a year if only `planned` ones."""

    since: Annotated[When, Meta(description="Not before this.")] | None = field(default=None, name="from")
    until: Annotated[When, Meta(description="Before this.")] | None = field(default=None, name="to")
    job: Annotated[Text, Meta(description="A job's name or id.")] | None = None
    trigger: Annotated[Text, Meta(description="A trigger's name.")] | None = None
    disposition: Annotated[Text, Meta(description="`fired`, `planned`, `skipped-overlap`, ...")] | None = None
    limit: Limit = 100


class FireCounting(Query, frozen=True, kw_only=True):
    """Which days, of which time zone: at most 62, 8 by the hour, or one by the minute."""

    since: (
        Annotated[Text, Meta(description="The first day, as 2026-11-15, or the day of an instant; today.")] | None
    ) = field(default=None, name="from")
    until: Annotated[Text, Meta(description="The last day; the first one unless said.")] | None = field(
        default=None, name="to"
    )
    by: Annotated[
        Literal["minute", "hour", "day"], Meta(description="What an item is for; minutes without fires are left out.")
    ] = "day"
    timezone: Annotated[Text, Meta(description='An IANA name such as "Europe/Paris".')] = "UTC"
    job: Annotated[Text, Meta(description="A job's name or id.")] | None = None


@get(f"{API}/fires", "fires.list", FirePage, access=VIEW, scope=by_job_filter, refuses=(NotFound, BadInput))
async def list_fires(call: ApiCall, query: FireList) -> Response:
    """Everything that fired or will fire in a window, across jobs, in the order of time."""
    page = await call.node.firing.fires.list(
        call.namespace, since=query.since, until=query.until, job=query.job, trigger=query.trigger,
        disposition=query.disposition, limit=query.limit, cursor=query.cursor,
    )  # fmt: skip
    return ok(page)


@get(
    f"{API}/fires/counts", "fires.count", FireCountsView, access=VIEW, scope=by_job_filter, refuses=(NotFound, BadInput)
)
async def count_fires(call: ApiCall, query: FireCounting) -> Response:
    """Count what fired, was missed or skipped and what is to come, by minute, hour or day of a time zone."""
    counted = await call.node.firing.fire_counts.of(
        call.namespace, since=query.since, until=query.until, by=query.by, zone=query.timezone, job=query.job
    )
    return ok(counted)
