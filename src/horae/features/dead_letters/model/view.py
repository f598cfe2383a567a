"""The API views of dead letters."""

from typing import Literal
from uuid import UUID

from msgspec import field

from horae.model.base.view import Time, View
from horae.model.executions.execution_view import ErrorView, ExecutionView


class FailedStepView(View, frozen=True, kw_only=True):
    """A failed step of a failed workflow. `executionId` is the step's execution, or the first one of a foreach."""

    step: str
    execution_id: UUID | None = None
    error: ErrorView | None = None


class DeadLetterView(View, frozen=True, kw_only=True):
    """An execution that failed for good.

    `state` is open, retried or discarded; `retriedAs` is the new execution of a retried one. A failed workflow is one
    dead letter with its failed `steps`, which are not dead letters of their own.
    """

    execution: ExecutionView
    state: Literal["open", "retried", "discarded"] = "open"
    retried_as: UUID | None = None
    marked_at: Time | None = None
    steps: list[FailedStepView] = []


class DeadLetterGroup(View, frozen=True, kw_only=True):
    """The dead letters of one job with one error type. `trend` counts failures in each 24th of the window."""

    job_id: UUID
    job_name: str
    error_type: str
    count: int
    newest_id: UUID
    newest_at: Time
    oldest_at: Time
    trend: list[int]
    error_message: str | None = None


class DeadLetterGroups(View, frozen=True, kw_only=True):
    """Groups, the largest first. `complete` is false if there are more dead letters or groups than were counted.

    The window of each `trend` is from `from` to `to`; it begins at the filter's `since` or with the oldest failure.
    """

    items: list[DeadLetterGroup]
    from_: Time = field(name="from")
    to: Time
    complete: bool


class BulkView(View, frozen=True, kw_only=True):
    """The result of a bulk action.

    `more` is true if there may be more dead letters than the limit allowed; a request with `nextCursor` as the filter's
    `cursor` continues with them. `notes` says why some were skipped.
    """

    matched: int
    done: int
    skipped: int = 0
    more: bool = False
    next_cursor: str | None = None
    execution_ids: list[UUID] = []
    notes: list[str] = []
