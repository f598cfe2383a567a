"""Dead letters as the API shows them."""

from typing import Literal
from uuid import UUID

from horae.model.execution_view import ExecutionView
from horae.model.view import Time, View


class DeadLetterView(View, frozen=True, kw_only=True):
    """A failed execution; `state` is open, retried (then `retriedAs` names the new execution) or discarded."""

    execution: ExecutionView
    state: Literal["open", "retried", "discarded"] = "open"
    retried_as: UUID | None = None
    marked_at: Time | None = None


class DeadLetterGroup(View, frozen=True, kw_only=True):
    """Dead letters of one job that failed alike."""

    job_id: UUID
    job_name: str
    error_type: str
    count: int
    newest_id: UUID
    newest_at: Time
    error_message: str | None = None


class DeadLetterGroups(View, frozen=True, kw_only=True):
    """The largest groups first; `complete` is false when there are more dead letters, or groups, than are told of."""

    items: list[DeadLetterGroup]
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
