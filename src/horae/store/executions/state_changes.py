"""What servers are told of executions that ended, or went on."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.model.admission.keys import CHILD
from horae.model.fleet.protocol import Failure


class WorkflowEnd(Struct, frozen=True):
    """How a workflow ran, which no worker did."""

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
    lane: int = 0  # where it was claimed from, if it was
    spans: tuple[Micros, ...] = ()  # how long some of them took, which stand for all
    waited: Micros | None = None  # in the queue, unless their start was told before
    flow: WorkflowEnd | None = None  # if it is a workflow that had begun
    attempt: int = 0  # the last, if there was one
    step: bool = False  # of a workflow, whose failure stands for theirs
    at: Instant = 0  # when they ended, as history says


class MovedItems(Struct, frozen=True):
    """Items that went on to another shelf, or of which something new is known."""

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
    what: str = "retried"  # or lost


class QueueWait(Struct, frozen=True):
    """How long items stood in the queue that have begun."""

    job: UUID
    namespace: int
    micros: Micros
    count: int


class StepChange(Struct, frozen=True):
    """A step of a workflow that stands otherwise than before."""

    execution: UUID  # of the workflow
    job: UUID
    namespace: int
    step: str
    state: str


def is_step(flags: int) -> bool:
    """Whether a slice with these flags is of a step of a workflow, which goes on when it ends."""
    return bool(flags & CHILD)
