"""Explanations as the API shows them."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from horae.model.base.view import Status, Time, View, shown_time
from horae.model.executions.estimate import Estimate
from horae.model.executions.gates import Blocker


class BlockerView(View, frozen=True, kw_only=True):
    """A gate that is closed: its name, in words, what opens it, until when, and details for programs."""

    gate: str
    message: str
    opens: Annotated[str, Meta(description="What would let it through.")]
    until: Annotated[Time | None, Meta(description="When it opens by itself; null when no time opens it.")] = None
    details: dict[str, Any]


class EstimateView(View, frozen=True, kw_only=True):
    """When it probably starts; `startsAt` is null when nobody can tell, and `reason` says why."""

    starts_at: Time | None
    reason: str
    ahead: Annotated[int, Meta(description="Executions that start before it.")] = 0
    slots: Annotated[int, Meta(description="Slots of live workers that could take it.")] = 0


class ExplanationView(View, frozen=True, kw_only=True):
    """Why an execution does not run: what holds it, in the order in which it is met, and when it probably starts.

    What runs or has ended is held by nothing; then `summary` says where it runs or how it ended.
    """

    execution_id: UUID
    job_id: UUID
    job: str
    status: Status
    queue: str | None = None
    summary: str
    blockers: list[BlockerView]
    estimate: EstimateView | None = None
    worker_id: str | None = None
    started_at: Time | None = None
    completed_at: Time | None = None


class JobExplanationView(View, frozen=True, kw_only=True):
    """Why a job does not run by itself, and what holds those of its executions that are to start first."""

    job_id: UUID
    job: str
    state: str
    summary: str
    blockers: list[BlockerView]
    next_fire_at: Time | None = None
    executions: list[ExplanationView]


def show_blocker(blocker: Blocker) -> BlockerView:
    return BlockerView(
        gate=blocker.gate,
        message=blocker.message,
        opens=blocker.opens,
        until=shown_time(blocker.until),
        details=dict(blocker.details),
    )


def show_estimate(estimate: Estimate) -> EstimateView:
    return EstimateView(
        starts_at=shown_time(estimate.starts_at),
        reason=estimate.reason,
        ahead=estimate.ahead,
        slots=estimate.slots,
    )
