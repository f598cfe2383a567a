"""Events: notices that data has changed. A client, such as the UI, then reads the data again."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant


class ChangeEvent(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A change of an execution, of a workflow's step, of a job, of a worker, or of an execution's log."""

    kind: str
    id: UUID
    state: str
    namespace: int
    at: Instant
    job: UUID | None = None
    count: int = 1  # number of changed executions: `id` and those that follow it in its parcel
    step: str = ""  # name of the changed step, if the execution is a workflow


LEFT_OUT = "missed"  # the kind of an event that replaces events that were left out
NOTHING = UUID(int=0)  # the `id` of an event that is not about one object


def left_out_event(namespace: int, at: Instant) -> ChangeEvent:
    """Return an event that says that earlier events of a namespace were left out."""
    return ChangeEvent(LEFT_OUT, NOTHING, "", namespace, at)


def limit_events(events: Sequence[ChangeEvent], most: int) -> list[ChangeEvent]:
    """Keep the last `most` events; one `missed` event for each namespace replaces the others."""
    if len(events) <= most:
        return list(events)
    left_out = {event.namespace: event.at for event in events[: len(events) - most]}
    return [
        *(left_out_event(namespace, at) for namespace, at in left_out.items()),
        *(event for event in events[len(events) - most :] if event.kind != LEFT_OUT or event.namespace not in left_out),
    ]
