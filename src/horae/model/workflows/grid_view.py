"""Grids as the API shows them."""

from uuid import UUID

from horae.model.base.view import Seconds, Status, Time, View
from horae.model.executions.execution_view import IntervalView


class GridItemView(View, frozen=True, kw_only=True):
    """An execution and how its steps stand; a step that it does not have is left out.

    `at` is when it was due, `interval` the data that it is about, if it says so.
    """

    execution_id: UUID
    status: Status
    at: Time
    interval: IntervalView | None = None
    seconds: Seconds | None
    steps: dict[str, str]


class GridView(View, frozen=True, kw_only=True):
    """Executions of a job, newest first, by the steps of its workflow; of a plain job `steps` is empty.

    By `interval`, the executions of a page are in the order of the data that they are about, the latest first.
    """

    steps: list[str]
    items: list[GridItemView]
    next_cursor: str | None = None
