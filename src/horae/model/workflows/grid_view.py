"""Grids of executions and steps as the API shows them."""

from uuid import UUID

from horae.model.base.view import Seconds, Status, Time, View
from horae.model.executions.execution_view import IntervalView


class GridItemView(View, frozen=True, kw_only=True):
    """An execution and the states of its steps. `steps` lacks steps that this execution does not have.

    `at` is when it was due, `interval` its data interval if it has one.
    """

    execution_id: UUID
    status: Status
    at: Time
    interval: IntervalView | None = None
    seconds: Seconds | None
    steps: dict[str, str]


class GridView(View, frozen=True, kw_only=True):
    """Executions of a job, newest first, and the steps of its workflow; `steps` is empty if the job is not a workflow.

    With `by=interval`, the executions of a page are ordered by data interval, the latest first.
    """

    steps: list[str]
    items: list[GridItemView]
    next_cursor: str | None = None
