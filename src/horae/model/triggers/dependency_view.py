"""Dependencies of jobs, and the joins that wait for them, as the API shows them."""

from typing import Literal
from uuid import UUID

from horae.model.base.view import Time, View
from horae.model.executions.execution_view import IntervalView


class JoinUpstreamView(View, frozen=True, kw_only=True):
    """The contribution of one upstream to a join.

    `met`: it ended as `condition` requires; `unmet`: it ended otherwise; `pending`: it has not ended.
    """

    job: str
    condition: str
    state: Literal["met", "unmet", "pending"]
    outcome: str | None = None
    execution_id: UUID | None = None


class JoinView(View, frozen=True, kw_only=True):
    """A join of a job: it waits until all jobs in `upstream` have ended, for one data interval if it has one.

    `state` is open, started, skipped or ended. `executionId` is the execution that waits for an open join, or the one
    that the join started.
    """

    interval: IntervalView | None = None
    state: str
    execution_id: UUID | None = None
    deadline: Time | None = None
    upstream: list[JoinUpstreamView]


class DependencyView(View, frozen=True, kw_only=True):
    """A job that another job depends on.

    `unusedExecutions` counts its executions without an interval that met the condition and that no join has used yet.
    """

    job_id: UUID
    job: str
    state: str
    condition: str
    unused_executions: int = 0


class DependenciesView(View, frozen=True, kw_only=True):
    """The dependencies of a job, the jobs that depend on it, and its joins, newest first."""

    job_id: UUID
    dependencies: list[DependencyView]
    dependents: list[str]
    joins: list[JoinView]
    notes: list[str] = []
