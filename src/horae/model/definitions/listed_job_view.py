"""A job in a list, with optional statistics of its executions."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from horae.model.base.view import Seconds, Status, Time, View
from horae.model.definitions.job_view import JobView

Share = Annotated[float, Meta(description="From 0 to 1.")]


class RecentExecutionView(View, frozen=True, kw_only=True):
    """An ended execution of a job; `seconds` is its duration."""

    execution_id: UUID
    status: Status
    seconds: Seconds | None
    at: Time


class JobStatisticsView(View, frozen=True, kw_only=True):
    """A job's newest executions, newest last, and statistics of the last seven days."""

    recent: list[RecentExecutionView]
    success_rate: Share | None
    p50: Seconds | None
    p95: Seconds | None
    executions: int


class ListedJobView(JobView, frozen=True, kw_only=True):
    """A job, with its statistics if requested."""

    statistics: JobStatisticsView | UnsetType = UNSET
