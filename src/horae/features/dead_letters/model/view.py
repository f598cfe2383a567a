"""Dead letters as the API shows them."""

from typing import Literal
from uuid import UUID

from msgspec import field

from horae.model.base.view import Time, View
from horae.model.executions.execution_view import ErrorView, ExecutionView


class FailedStepView(View, frozen=True, kw_only=True):
    """A step that failed, of a workflow that did; `executionId` is the step's, of a foreach the first."""

    step: str
    execution_id: UUID | None = None
    error: ErrorView | None = None


class DeadLetterView(View, frozen=True, kw_only=True):
    """A failed execution; `state` is open, retried (then `retriedAs` names the new execution) or discarded.

    A failed workflow is one letter, with the `steps` that failed; these leave none of their own.
    """

    execution: ExecutionView
    state: Literal["open", "retried", "discarded"] = "open"
    retried_as: UUID | None = None
    marked_at: Time | None = None
    steps: list[FailedStepView] = []


class DeadLetterGroup(View, frozen=True, kw_only=True):
    """Dead letters of one job that failed alike; `course` is how many did in each 24th of the window."""

    job_id: UUID
    job_name: str
    error_type: str
    count: int
    newest_id: UUID
    newest_at: Time
    oldest_at: Time
    course: list[int]
    error_message: str | None = None


class DeadLetterGroups(View, frozen=True, kw_only=True):
    """The largest groups first; `complete` is false when there are more dead letters, or groups, than are told of.

    Courses run over the window from `from` to `to`, which begins with the oldest unless the filter says since when.
    """

    items: list[DeadLetterGroup]
    from_: Time = field(name="from")
    to: Time
    complete: bool


class BulkView(View, frozen=True, kw_only=True):
    """What a bulk action did; `more` says that the limit ended it, `nextCursor` in the filter goes on from there."""

    matched: int
    done: int
    skipped: int = 0
    more: bool = False
    next_cursor: str | None = None
    execution_ids: list[UUID] = []
    notes: list[str] = []
