"""Even spreading: how many of a job's executions each worker may get, so that loads stay even."""

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Micros

PATIENCE: Micros = 5 * SECOND  # how long a worker that has its share leaves the rest to other workers


class SpreadWorker(Struct, frozen=True):
    """A worker that could take some: its executions of the job, all its executions, and its slots."""

    session: UUID
    own: int
    running: int
    slots: int


def bounds(count: int, holders: Iterable[SpreadWorker]) -> dict[UUID, int]:
    """Return how many of `count` more executions each worker may get.

    Workers are filled up to the level at which all that have room have the same number. Workers that are full, or
    already above that level, are left out: their executions stay.
    """
    room = sorted((holder for holder in holders if holder.running < holder.slots), key=lambda h: h.own, reverse=True)
    total = count + sum(holder.own for holder in room)
    while room and room[0].own * len(room) >= total:  # above the level that the others would reach
        total -= room.pop(0).own
    level = -(-total // len(room)) if room else 0
    return {holder.session: min(level - holder.own, holder.slots - holder.running) for holder in room}
