"""Events: that something changed. They are hints for people's screens; the truth is read again."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant


class Event(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing changed: an execution, a step of one, a job, a worker or an execution's log."""

    kind: str
    id: UUID
    state: str
    namespace: int
    at: Instant
    job: UUID | None = None
    count: int = 1  # how many executions of the same parcel, from this one on
    step: str = ""  # of a workflow's execution
