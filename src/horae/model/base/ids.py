"""Execution ids: a parcel's UUIDv7 with the item's index in the low 16 bits."""

from collections.abc import Callable, Iterator
from uuid import UUID

from horae.env import Instant, uuid_of

ParcelId = UUID
ExecutionId = UUID

_INDEX, _RUN = 0xFFFF, 0xFFFF_FFFF


def parcel_id(fresh: UUID) -> ParcelId:
    """Make a fresh UUIDv7 a parcel's by clearing its low 16 bits."""
    return uuid_of(fresh.int & ~_INDEX)


def parcel_ids(new_id: Callable[[], UUID]) -> Iterator[ParcelId]:
    """Ids of parcels that are made together: one after another from a fresh UUIDv7 on, as they lie in every index.

    A run has 65,536 of them and 42 bits of chance, and the millisecond, that are its own.
    """
    while True:
        first = new_id().int & ~_RUN
        for place in range(0, _RUN, _INDEX + 1):
            yield uuid_of(first | place)


def execution_id(parcel: ParcelId, index: int) -> ExecutionId:
    """Name one item of a parcel."""
    return uuid_of(parcel.int | index)


def parcel_of(execution: ExecutionId) -> ParcelId:
    """Tell which parcel an execution travels in."""
    return uuid_of(execution.int & ~_INDEX)


def index_of(execution: ExecutionId) -> int:
    """Tell which item of its parcel an execution is."""
    return execution.int & _INDEX


def instant_of(id: UUID) -> Instant:
    """The instant a UUIDv7 was made, to the millisecond."""
    return (id.int >> 80) * 1000


def first_id_at(at: Instant) -> UUID:
    """The least id that can be made at an instant: the lower bound of a range by time."""
    return UUID(int=(at // 1000) << 80)
