"""Topics: notifications inside a server. They are the only way in which a part or a feature reacts to another one."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from horae.env import Instant
from horae.model.base.topic import Topic
from horae.model.executions.parcel import Parcel
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects


class CancelledCount(NamedTuple):
    """The number of executions of a job that were cancelled before they ran."""

    job: UUID
    executions: int


class FiredParcels(NamedTuple):
    """The parcels that a batch of fires made."""

    parcels: Sequence[Parcel]
    at: Instant


class QueueSample(NamedTuple):
    """The number of queued executions of each namespace at an instant."""

    queued: Mapping[int, int]
    at: Instant


class Topics:
    """The topics of one server. `str` lists them with their subscribers, in the order of their calls."""

    def __init__(self, store: Store) -> None:
        self.created = store.created  # executions were stored for the first time
        self.started = store.started  # a cancellation, a signal or a workflow let other executions continue
        self.settled: Topic[Effects] = Topic("settled")  # a report, a rescue or a timeout was committed
        self.cancelled: Topic[CancelledCount] = Topic("cancelled")
        # Jobs with failures that were counted anew, because the server that saw them ended before it wrote its counts.
        self.failed: Topic[Collection[UUID]] = Topic("failed")
        self.fired: Topic[FiredParcels] = Topic("fired")
        self.sampled: Topic[QueueSample] = Topic("sampled")
        self.blocked: Topic[None] = Topic("blocked")  # an execution began to wait for another one of its trigger
        self.opened: Topic[None] = Topic("opened")  # workflows left the queue and began
        self.held: Topic[Collection[int]] = Topic("held")  # holds began on these queues
        self.freed: Topic[Iterable[UUID]] = Topic("freed")  # items of these parcels released their keys

    def __str__(self) -> str:
        return "\n".join(str(topic) for topic in vars(self).values())
