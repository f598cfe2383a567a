"""Explanations as the API shows them."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from horae.model.base.view import Status, Time, View, shown_time
from horae.model.executions.estimate import Estimate
from horae.model.executions.gates import Blocker


class BlockerView(View, frozen=True, kw_only=True):
    """A closed gate: its name, an explanation, what opens it, when it opens if known, and details for programs."""

    gate: str
    message: str
    opens_when: Annotated[str, Meta(description="The event that opens the gate.")]
    until: Annotated[Time | None, Meta(description="When the gate opens by itself; null if that is not known.")] = None
    details: dict[str, Any]


class EstimateView(View, frozen=True, kw_only=True):
    """The probable start; `startsAt` is null when there is no estimate, and `reason` says why."""

    starts_at: Time | None
    reason: str
    gate: Annotated[
        str | None,
        Meta(
            description="The gate that prevents an estimate; null if there is an estimate, or none for another reason."
        ),
    ] = None
    executions_ahead: Annotated[int, Meta(description="Executions that start before it.")] = 0
    slots: Annotated[int, Meta(description="Slots of live workers that could take it.")] = 0


class ExplanationView(View, frozen=True, kw_only=True):
    """The reasons that an execution does not run, in the order of its gates, and its probable start.

    A running or ended execution has no blockers; its `summary` says where it runs or how it ended.
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
    """The reasons that a job does not start by itself, and the blockers of its next executions."""

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
        opens_when=blocker.opens,
        until=shown_time(blocker.until),
        details=dict(blocker.details),
    )


def show_estimate(estimate: Estimate) -> EstimateView:
    return EstimateView(
        starts_at=shown_time(estimate.starts_at),
        reason=estimate.reason,
        gate=estimate.gate,
        executions_ahead=estimate.executions_ahead,
        slots=estimate.slots,
    )
