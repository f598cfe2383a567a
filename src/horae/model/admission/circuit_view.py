"""Circuits as the API shows them."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from horae.model.admission.circuit import NOBODY, AttemptCounts, CircuitState, CircuitStatus
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View, shown_time


class CircuitView(View, frozen=True, kw_only=True):
    """How a circuit stands: closed (all is well), open (nothing starts), or half-open (probes are tried).

    `attempts` and `failed` are those of its window since it changed last, `waiting` the executions that wait for it.
    """

    job_id: UUID
    job: str
    key: Annotated[str | None, Meta(description="The value that it is for; null for the job's own.")]
    state: CircuitState
    forced: Annotated[bool, Meta(description="By hand: it stays so until it is reset.")]
    cause: str
    by: Annotated[str | None, Meta(description="Who changed it; null when its failures or its time did.")]
    since: Time | None
    until: Annotated[Time | None, Meta(description="When probes are tried; null when nobody knows.")]
    attempts: int
    failed: int
    waiting: int
    probes: Annotated[list[UUID], Meta(description="The executions that are tried while it is half-open.")]


class CircuitChangeView(View, frozen=True, kw_only=True):
    """A change that a circuit went through."""

    key: str | None
    at: Time
    state: CircuitState
    forced: bool
    cause: str
    by: str | None


class JobCircuitView(View, frozen=True, kw_only=True):
    """A job's circuit, or those of its keys that opened or were changed by hand, and what they went through."""

    job_id: UUID
    job: str
    definition: Annotated[dict[str, Any], Meta(description="The job's `circuit`.")]
    circuits: list[CircuitView]
    changes: Annotated[list[CircuitChangeView], Meta(description="The newest first, of the last 30 days.")]


def show_circuit(standing: CircuitStatus, job: str, counted: AttemptCounts, waiting: int) -> CircuitView:
    return CircuitView(
        job_id=standing.job,
        job=job,
        key=standing.key or None,
        state=standing.state,
        forced=standing.forced,
        cause=standing.cause,
        by=None if standing.by == NOBODY else standing.by,
        since=format_instant(standing.since) if standing.since else None,
        until=shown_time(standing.until),
        attempts=counted.total,
        failed=counted.failed,
        waiting=waiting,
        probes=list(standing.probes),
    )
