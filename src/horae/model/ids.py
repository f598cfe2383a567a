"""Execution ids: a parcel's UUIDv7 with the item's index in the low 16 bits."""

from uuid import UUID

from horae.env import Instant, uuid_of

ParcelId = UUID
ExecutionId = UUID
JobId = UUID
SessionId = UUID

_INDEX = 0xFFFF


def parcel_id(fresh: UUID) -> ParcelId:
    """Make a fresh UUIDv7 a parcel's by clearing its low 16 bits."""
    return uuid_of(fresh.int & ~_INDEX)


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
