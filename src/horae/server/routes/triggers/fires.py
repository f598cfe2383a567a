"""Fires of triggers: past fires with their results, and planned fires."""

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
    """The selection of fires in [from, to).

    The default is from an hour ago to a day ahead, or a year ahead if only `planned` fires are selected.
    """

    since: Annotated[When, Meta(description="Only from this time on.")] | None = field(default=None, name="from")
    until: Annotated[When, Meta(description="Only before this time.")] | None = field(default=None, name="to")
    job: Annotated[Text, Meta(description="Only fires of this job, by name or id.")] | None = None
    trigger: Annotated[Text, Meta(description="Only fires of triggers with this name.")] | None = None
    disposition: Annotated[Text, Meta(description="`fired`, `planned`, `skipped-overlap`, ...")] | None = None
    limit: Limit = 100


class FireCountsQuery(Query, frozen=True, kw_only=True):
    """The days to count, in a time zone: at most 62 days by day, 8 by hour, or one by minute."""

    since: (
        Annotated[
            Text, Meta(description="The first day, such as 2026-11-15, or the day of an instant; today by default.")
        ]
        | None
    ) = field(default=None, name="from")
    until: Annotated[Text, Meta(description="The last day; the first day by default.")] | None = field(
        default=None, name="to"
    )
    by: Annotated[
        Literal["minute", "hour", "day"],
        Meta(description="The period that each item counts; minutes without fires are left out."),
    ] = "day"
    timezone: Annotated[Text, Meta(description='An IANA name such as "Europe/Paris".')] = "UTC"
    job: Annotated[Text, Meta(description="Only fires of this job, by name or id.")] | None = None


@get(f"{API}/fires", "fires.list", FirePage, access=VIEW, scope=by_job_filter, refuses=(NotFound, BadInput))
async def list_fires(call: ApiCall, query: FireList) -> Response:
    """List past and planned fires in a window, across jobs, in the order of time."""
    page = await call.node.firing.fires.list(
        call.namespace, since=query.since, until=query.until, job=query.job, trigger=query.trigger,
        disposition=query.disposition, limit=query.limit, cursor=query.cursor,
    )  # fmt: skip
    return ok(page)


@get(
    f"{API}/fires/counts", "fires.count", FireCountsView, access=VIEW, scope=by_job_filter, refuses=(NotFound, BadInput)
)
async def count_fires(call: ApiCall, query: FireCountsQuery) -> Response:
    """Count fired, missed, skipped and planned fires, by minute, hour or day of a time zone."""
    counted = await call.node.firing.fire_counts.of(
        call.namespace, since=query.since, until=query.until, by=query.by, zone=query.timezone, job=query.job
    )
    return ok(counted)
