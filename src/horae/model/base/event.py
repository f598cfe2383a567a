"""Events: that something changed. They are hints for people's screens; the truth is read again."""

from collections.abc import Sequence
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


MISSED = "missed"  # the kind of an event that stands for others, which were left out
NOTHING = UUID(int=0)


def missed(namespace: int, at: Instant) -> Event:
    """Something happened in a namespace that nobody was told of."""
    return Event(MISSED, NOTHING, "", namespace, at)


def cut(events: Sequence[Event], most: int) -> list[Event]:
    """The last so many events, and for each namespace of the others one that says that some are missing."""
    if len(events) <= most:
        return list(events)
    left_out = {event.namespace: event.at for event in events[: len(events) - most]}
    return [
        *(missed(namespace, at) for namespace, at in left_out.items()),
        *(event for event in events[len(events) - most :] if event.kind != MISSED or event.namespace not in left_out),
    ]
