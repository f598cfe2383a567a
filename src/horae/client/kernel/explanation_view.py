"""Explanations why an execution or a job does not run, as the client returns them."""

from datetime import datetime
from typing import Any

from horae.client.views import ApiDocument


class BlockerInfo(ApiDocument, frozen=True, kw_only=True):
    """A closed gate: a reason why an execution may not start yet."""

    gate: str  # its kind
    message: str
    opens_when: str  # the event that opens it, in words
    until: datetime | None = None  # when it opens by itself; None if time does not open it
    details: dict[str, Any] = {}


class StartEstimate(ApiDocument, frozen=True, kw_only=True):
    """The estimated start of an execution. `starts_at` is None if there is no estimate, and `reason` says why."""

    starts_at: datetime | None = None
    reason: str
    gate: str | None = None  # the gate that prevents an estimate; `reason` is its message
    executions_ahead: int = 0  # executions that start before it
    slots: int = 0  # slots of live workers that could take it


class Explanation(ApiDocument, frozen=True, kw_only=True):
    """The reasons why an execution or a job does not run, in order.

    Running and ended executions have no blockers.
    """

    execution_id: str | None = None
    job_id: str
    job: str
    summary: str
    blockers: list[BlockerInfo] = []
    estimate: StartEstimate | None = None
    executions: list["Explanation"] = []
