"""Why something does not run, as the client gives it back."""

from datetime import datetime
from typing import Any

from horae.client.views import ApiDocument


class BlockerInfo(ApiDocument, frozen=True, kw_only=True):
    """A gate that is closed: what it is, what opens it, and until when if that is known."""

    gate: str
    message: str
    opens: str
    until: datetime | None = None
    details: dict[str, Any] = {}


class StartEstimate(ApiDocument, frozen=True, kw_only=True):
    """When an execution probably starts; None with the reason when nobody can tell."""

    starts_at: datetime | None = None
    reason: str
    ahead: int = 0
    slots: int = 0


class Explanation(ApiDocument, frozen=True, kw_only=True):
    """Why an execution or a job does not run: what holds it, in order. What runs or has ended is held by nothing."""

    execution_id: str | None = None
    job_id: str
    job: str
    summary: str
    blockers: list[BlockerInfo] = []
    estimate: StartEstimate | None = None
    executions: list["Explanation"] = []
