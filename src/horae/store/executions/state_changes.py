"""State changes of executions, as servers announce and count them."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.admission.keys import CHILD
from horae.model.fleet.protocol import Failure


class WorkflowEnd(Struct, frozen=True):
    """The run of a workflow, which has no worker."""

    attempt: int
    began_at: Instant
    ended_at: Instant
    error: Failure | None = None


class FinishedItems(Struct, frozen=True):
    """Items that reached a final state: for events and statistics."""

    parcel: UUID
    lo: int
    hi: int
    job: UUID
    namespace: int
    state: str
    busy: int
    lane: int = 0  # from which they were claimed, if they were
    spans: tuple[Micros, ...] = ()  # durations of a sample of them
    waited: Micros | None = None  # time in the queue, unless it was counted at their start
    flow: WorkflowEnd | None = None  # if it is a workflow that had begun
    attempt: int = 0  # the last attempt, if there was one
    step: bool = False  # whether they are steps of a workflow, whose failure counts instead of theirs
    at: Instant = 0  # the end, as in history


class MovedItems(Struct, frozen=True):
    """Items that moved to another shelf, or have new progress or log lines."""

    parcel: UUID
    lo: int
    hi: int
    job: UUID
    namespace: int
    state: str


class RetriedAttempts(Struct, frozen=True):
    """Attempts that did not end their executions: for statistics."""

    job: UUID
    namespace: int
    count: int
    outcome: str = "retried"  # or lost


class QueueWait(Struct, frozen=True):
    """The time that items spent in the queue before they began."""

    job: UUID
    namespace: int
    micros: Micros
    count: int


class StepChange(Struct, frozen=True):
    """A step of a workflow that changed its state."""

    execution: UUID  # of the workflow
    job: UUID
    namespace: int
    step: str
    state: str


def is_step(flags: int) -> bool:
    """Tell whether a slice with these flags is a step of a workflow, which advances when the step ends."""
    return bool(flags & CHILD)
