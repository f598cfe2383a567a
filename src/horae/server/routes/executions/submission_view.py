"""What is answered to those who asked for executions."""

from typing import Any
from uuid import UUID

from msgspec import UNSET, UnsetType

from horae.model.base.view import Status, View


class Accepted(View, frozen=True, kw_only=True):
    """An execution that was accepted; `deduplicated` says that its key stood for this one already.

    `cached` says that the execution ended before, and its `result` answers; `batched`, that it takes in this submission
    as the item at `index`.
    `warning` is there when it needs what no worker ever had.
    """

    execution_id: UUID
    status: Status
    deduplicated: bool
    cached: bool | UnsetType = UNSET
    result: Any | UnsetType = UNSET
    batched: bool | UnsetType = UNSET
    index: int | UnsetType = UNSET
    warning: str | UnsetType = UNSET


class Triggered(Accepted, frozen=True, kw_only=True):
    """A job that was triggered; `fires` names the jobs that its end may start, `note` says what of that is so."""

    fires: tuple[str, ...] = ()
    note: str | None = None


class BulkItem(View, frozen=True, kw_only=True):
    """What became of one item: an execution, or the problem for which it was refused."""

    execution_id: UUID | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    deduplicated: bool | UnsetType = UNSET
    cached: bool | UnsetType = UNSET
    batched: bool | UnsetType = UNSET
    index: int | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


class BulkAccepted(View, frozen=True, kw_only=True):
    """What became of each item, in their order; `warnings` is there when jobs of them need what no worker ever had."""

    items: list[BulkItem]
    accepted: int
    refused: int
    warnings: list[str] | UnsetType = UNSET
