"""Answers to submissions."""

from typing import Any
from uuid import UUID

from msgspec import UNSET, UnsetType

from horae.model.base.view import Status, View


class Accepted(View, frozen=True, kw_only=True):
    """An accepted execution. `deduplicated` means that the submission's key already belonged to this execution.

    `cached` means that an earlier execution's `result` is the answer; `batched`, that the execution includes this
    submission as the item at `index`. `warning` is present if the job needs something that no worker ever had.
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
    """A triggered job. `fires` names the jobs that the end of the execution may start; `note` explains exceptions."""

    fires: tuple[str, ...] = ()
    note: str | None = None


class BulkItem(View, frozen=True, kw_only=True):
    """The result of one item: an execution, or the problem for which it was refused."""

    execution_id: UUID | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    deduplicated: bool | UnsetType = UNSET
    cached: bool | UnsetType = UNSET
    batched: bool | UnsetType = UNSET
    index: int | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


class BulkAccepted(View, frozen=True, kw_only=True):
    """The result of each item, in order; `warnings` is present if jobs need something that no worker ever had."""

    items: list[BulkItem]
    accepted: int
    refused: int
    warnings: list[str] | UnsetType = UNSET
