"""What happens inside a server, as topics: the only way in which one part, or a feature, follows another."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from horae.env import Instant
from horae.model.base.topic import Topic
from horae.model.executions.parcel import Parcel
from horae.store.contract import Store
from horae.store.executions.leaving.effects import Effects


class CancelledCount(NamedTuple):
    """So many executions of a job were cancelled before they ran."""

    job: UUID
    executions: int


class FiredParcels(NamedTuple):
    """A batch of fires made these parcels."""

    parcels: Sequence[Parcel]
    at: Instant


class QueueSample(NamedTuple):
    """So many executions of each namespace were queued at an instant."""

    queued: Mapping[int, int]
    at: Instant


class Topics:
    """The topics of one server. `str` lists them with their subscribers, in the order in which these are told."""

    def __init__(self, store: Store) -> None:
        self.made = store.created  # executions were stored for the first time
        self.started = store.started  # a cancellation, a signal or a workflow let other executions go on
        self.settled: Topic[Effects] = Topic("settled")  # a report, a rescue or a timeout was committed
        self.cancelled: Topic[CancelledCount] = Topic("cancelled")
        self.failed: Topic[Collection[UUID]] = Topic("failed")  # jobs that failed on a server that is gone
        self.fired: Topic[FiredParcels] = Topic("fired")
        self.sampled: Topic[QueueSample] = Topic("sampled")
        self.blocked: Topic[None] = Topic("blocked")  # something began to wait for an execution of the same key
        self.opened: Topic[None] = Topic("opened")  # workflows left the queue
        self.held: Topic[Collection[int]] = Topic("held")  # these queues are held now
        self.freed: Topic[Iterable[UUID]] = Topic("freed")  # items of these parcels gave their keys back

    def __str__(self) -> str:
        return "\n".join(str(topic) for topic in vars(self).values())
