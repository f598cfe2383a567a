"""Execution ids: the UUIDv7 of a parcel with the item's index in the low 16 bits."""

from collections.abc import Callable, Iterator
from uuid import UUID

from horae.env import Instant, uuid_of

ParcelId = UUID
ExecutionId = UUID

_INDEX, _RUN = 0xFFFF, 0xFFFF_FFFF  # masks: the item's index in an id, and the bits in which ids of one run differ


def parcel_id(fresh: UUID) -> ParcelId:
    """Turn a fresh UUIDv7 into a parcel's id by clearing its low 16 bits."""
    return uuid_of(fresh.int & ~_INDEX)


def parcel_ids(new_id: Callable[[], UUID]) -> Iterator[ParcelId]:
    """Yield ids for parcels that are created together.

    The ids are consecutive, so that the parcels are adjacent in every index of the database. The 65,536 ids of a run
    share one millisecond and one random part of 42 bits.
    """
    while True:
        first = new_id().int & ~_RUN
        for place in range(0, _RUN, _INDEX + 1):
            yield uuid_of(first | place)


def execution_id(parcel: ParcelId, index: int) -> ExecutionId:
    """Return the id of one item of a parcel."""
    return uuid_of(parcel.int | index)


def parcel_of(execution: ExecutionId) -> ParcelId:
    """Return the parcel of an execution."""
    return uuid_of(execution.int & ~_INDEX)


def index_of(execution: ExecutionId) -> int:
    """Return the index of an execution in its parcel."""
    return execution.int & _INDEX


def instant_of(uuid: UUID) -> Instant:
    """Return the instant at which a UUIDv7 was created, to the millisecond."""
    return (uuid.int >> 80) * 1000


def first_id_at(at: Instant) -> UUID:
    """Return the least id that can be created at an instant: the lower bound of ids that were created since then."""
    return UUID(int=(at // 1000) << 80)
