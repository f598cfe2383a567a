"""Events: notices of changes. They are hints for screens, which then read the data again."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant


class Event(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A change of an execution, a step of one, a job, a worker or an execution's log."""

    kind: str
    id: UUID
    state: str
    namespace: int
    at: Instant
    job: UUID | None = None
    count: int = 1  # how many executions of the same parcel, from this one on
    step: str = ""  # of a workflow's execution


MISSED = "missed"  # the kind of an event that replaces others, which were left out
NOTHING = UUID(int=0)


def missed(namespace: int, at: Instant) -> Event:
    """Return an event that says that earlier events of a namespace were left out."""
    return Event(MISSED, NOTHING, "", namespace, at)


def limit_events(events: Sequence[Event], most: int) -> list[Event]:
    """Keep the last `most` events; one `missed` event for each namespace replaces the others."""
    if len(events) <= most:
        return list(events)
    left_out = {event.namespace: event.at for event in events[: len(events) - most]}
    return [
        *(missed(namespace, at) for namespace, at in left_out.items()),
        *(event for event in events[len(events) - most :] if event.kind != MISSED or event.namespace not in left_out),
    ]
