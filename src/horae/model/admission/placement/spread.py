"""Even spreading: how many of a job's executions each worker may get, so that none has many while another has few."""

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Micros

PATIENCE: Micros = 5 * SECOND  # how long a worker that has its share leaves the rest to others


class SpreadWorker(Struct, frozen=True):
    """A worker that could take some: how many it has of the job, of anything, and at most."""

    session: UUID
    own: int
    running: int
    slots: int


def bounds(count: int, holders: Iterable[SpreadWorker]) -> dict[UUID, int]:
    """How many of so many more each may get: up to the level at which all that have room would have the same.

    Those that are full, or have more than that already, count for nothing: what runs there stays.
    """
    room = sorted((holder for holder in holders if holder.running < holder.slots), key=lambda h: h.own, reverse=True)
    total = count + sum(holder.own for holder in room)
    while room and room[0].own * len(room) >= total:  # above the level that the others would reach
        total -= room.pop(0).own
    level = -(-total // len(room)) if room else 0
    return {holder.session: min(level - holder.own, holder.slots - holder.running) for holder in room}
