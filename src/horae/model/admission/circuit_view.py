"""Circuits as the API shows them."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from horae.model.admission.circuit import NO_USER, AttemptCounts, CircuitState, CircuitStatus
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View, shown_time


class CircuitView(View, frozen=True, kw_only=True):
    """The state of a circuit: closed (executions start), open (none start) or half-open (probes run).

    `attempts` and `failed` count attempts within its window and since its last change; `waiting` counts the executions
    that wait for the circuit.
    """

    job_id: UUID
    job: str
    key: Annotated[str | None, Meta(description="The value of the key; null for the job's own circuit.")]
    state: CircuitState
    forced: Annotated[bool, Meta(description="Set by hand; it stays in this state until it is reset.")]
    cause: str
    changed_by: Annotated[str | None, Meta(description="The user who changed it; null when it changed by itself.")]
    since: Time | None
    until: Annotated[Time | None, Meta(description="When probes of an open circuit start; null if no time is set.")]
    attempts: int
    failed: int
    waiting: int
    probes: Annotated[list[UUID], Meta(description="The executions that run as probes while it is half-open.")]


class CircuitChangeView(View, frozen=True, kw_only=True):
    """One change of a circuit's state."""

    key: str | None
    at: Time
    state: CircuitState
    forced: bool
    cause: str
    changed_by: str | None


class JobCircuitView(View, frozen=True, kw_only=True):
    """The circuit of a job, or the circuits of its keys that opened or were changed by hand, with their history."""

    job_id: UUID
    job: str
    definition: Annotated[dict[str, Any], Meta(description="The settings of the circuit: the job's field `circuit`.")]
    circuits: list[CircuitView]
    changes: Annotated[list[CircuitChangeView], Meta(description="The changes of the last 30 days, newest first.")]


def show_circuit(status: CircuitStatus, job: str, counts: AttemptCounts, waiting: int) -> CircuitView:
    return CircuitView(
        job_id=status.job,
        job=job,
        key=status.key or None,
        state=status.state,
        forced=status.forced,
        cause=status.cause,
        changed_by=None if status.by == NO_USER else status.by,
        since=format_instant(status.since) if status.since else None,
        until=shown_time(status.until),
        attempts=counts.total,
        failed=counts.failed,
        waiting=waiting,
        probes=list(status.probes),
    )
