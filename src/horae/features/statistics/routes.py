"""Routes of the overview of a namespace and of job statistics: totals, days, and executions counted by status."""

from contextlib import suppress
from typing import Annotated

from msgspec import Meta, field

from horae.errors import BadInput, NotFound, StoreUnavailable
from horae.features.statistics.model import DaysView, JobTotalsView, OverviewView
from horae.features.statistics.part import StatisticsPart
from horae.model.executions.execution_view import ExecutionCountsView
from horae.server.access import VIEW
from horae.server.call import ApiCall
from horae.server.reading.queries import Query, Text, TimeWindow
from horae.server.reply import Response, ok
from horae.server.route import API, get
from horae.server.scopes import by_job, closed

JOB = f"{API}/jobs/{{ref}}"


class DaysQuery(Query, frozen=True, kw_only=True):
    """The days to read, at most 400, and their time zone."""

    since: Annotated[Text, Meta(description="The first day, as 2026-11-15, or the day of an instant.")] | None = field(
        default=None, name="from"
    )
    until: Annotated[Text, Meta(description="The last day.")] | None = field(default=None, name="to")
    timezone: Annotated[Text, Meta(description='An IANA name such as "Europe/Paris".')] = "UTC"


@get(f"{JOB}/statistics", "jobs.statistics", JobTotalsView, access=VIEW, scope=by_job, refuses=(NotFound, BadInput))
async def statistics(call: ApiCall, query: TimeWindow) -> Response:
    """Read outcomes and durations of a job's executions in a window, by default the last seven days."""
    return ok(
        await call.node.part(StatisticsPart).job_statistics.of(
            call.namespace, call.path("ref"), query.since, query.until
        )
    )


@get(f"{JOB}/days", "jobs.days", DaysView, access=VIEW, scope=by_job, refuses=(NotFound, BadInput))
async def days(call: ApiCall, query: DaysQuery) -> Response:
    """Read outcomes of a job's executions and numbers of future fires by day, by default a year back and 14 days ahead.

    Days that are more than 100 days ago are days of UTC instead of the time zone.
    """
    view = await call.node.part(StatisticsPart).job_statistics.days(
        call.namespace, call.path("ref"), query.since, query.until, query.timezone
    )
    return ok(view)


@get(f"{API}/executions/counts", "executions.counts", ExecutionCountsView, access=VIEW, scope=closed)
async def counts(call: ApiCall) -> Response:
    """Count executions by status.

    Executions that have not ended are counted exactly. Ended ones are counted from statistics, which may miss the last
    five seconds of other servers, or up to two minutes after a server was killed.
    """
    with suppress(StoreUnavailable):  # so that the counts can be read while the store cannot be written
        await call.node.part(StatisticsPart).statistics.step()
    return ok(await call.node.part(StatisticsPart).job_statistics.counts(call.namespace))


@get(f"{API}/overview", "overview.get", OverviewView, access=VIEW, scope=closed, refuses=(BadInput,))
async def overview(call: ApiCall, query: TimeWindow) -> Response:
    """Read the current state of a namespace, and outcomes in the last hour or another window of the last 31 days."""
    return ok(await call.node.part(StatisticsPart).overview.show(call.namespace, query.since, query.until))
