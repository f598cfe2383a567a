"""State changes of executions, in the form in which servers publish and count them."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.admission.keys import CHILD
from horae.model.fleet.protocol import Failure


class WorkflowEnd(Struct, frozen=True):
    """The attempt of a workflow that has ended; no worker reports it, because a workflow has no worker."""

    attempt: int
    began_at: Instant
    ended_at: Instant
    error: Failure | None = None


class FinishedItems(Struct, frozen=True):
    """Items that have reached a final state, for events and statistics."""

    parcel: UUID
    lo: int
    hi: int
    job: UUID
    namespace: int
    state: str
    busy: int  # microseconds that workers spent on them, in total
    lane: int = 0  # the lane from which they were claimed, or 0
    spans: tuple[Micros, ...] = ()  # durations of a sample of them
    waited: Micros | None = None  # time in the queue; None if it was counted at their start, or they never started
    workflow: WorkflowEnd | None = None  # set for a workflow that had begun
    attempt: int = 0  # the last attempt, if there was one
    step: bool = False  # whether they are steps of a workflow; then the failure of the workflow counts, not theirs
    at: Instant = 0  # the instant of their end, as in history


class MovedItems(Struct, frozen=True):
    """Items that moved to another shelf, or have new progress or log lines."""

    parcel: UUID
    lo: int
    hi: int
    job: UUID
    namespace: int
    state: str


class RetriedAttempts(Struct, frozen=True):
    """Attempts that failed and are retried, or were lost with their worker, for statistics."""

    job: UUID
    namespace: int
    count: int
    outcome: str = "retried"  # or "lost"


class QueueWait(Struct, frozen=True):
    """The time that items spent in the queue before they began."""

    job: UUID
    namespace: int
    micros: Micros
    count: int


class StepChange(Struct, frozen=True):
    """A step of a workflow that changed its state."""

    execution: UUID  # the execution of the workflow
    job: UUID
    namespace: int
    step: str
    state: str


def is_step(flags: int) -> bool:
    """Tell whether a slice with these flags is a step of a workflow, which advances when the step ends."""
    return bool(flags & CHILD)
