"""Explanations why an execution or a job does not run, as the client returns them."""

from datetime import datetime
from typing import Any

from horae.client.views import ApiDocument


class BlockerInfo(ApiDocument, frozen=True, kw_only=True):
    """A closed gate: its kind, its remedy, and its end if that is known."""

    gate: str
    message: str
    opens: str
    until: datetime | None = None
    details: dict[str, Any] = {}


class StartEstimate(ApiDocument, frozen=True, kw_only=True):
    """The estimated start of an execution; None with the reason if there is no estimate."""

    starts_at: datetime | None = None
    reason: str
    ahead: int = 0
    slots: int = 0


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
