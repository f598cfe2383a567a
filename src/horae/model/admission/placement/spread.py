"""Even spreading: how many of a job's executions each worker may get, so that loads stay even."""

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Micros

PATIENCE: Micros = 5 * SECOND  # how long a worker with its even share leaves more executions to other workers


class SpreadWorker(Struct, frozen=True):
    """A worker that could take executions of a job; `own` counts its executions of that job, `running` those of all."""

    session: UUID
    own: int
    running: int
    slots: int


def bounds(count: int, holders: Iterable[SpreadWorker]) -> dict[UUID, int]:
    """Return how many of `count` more executions of a job each worker may get.

    Workers that get some then have equally many executions of the job, as far as their slots allow. Workers that have
    no free slot, or already have more executions of the job than those, get none and are left out.
    """
    room = sorted((holder for holder in holders if holder.running < holder.slots), key=lambda h: h.own, reverse=True)
    total = count + sum(holder.own for holder in room)
    while room and room[0].own * len(room) >= total:  # above the level that the others would reach
        total -= room.pop(0).own
    level = -(-total // len(room)) if room else 0
    return {holder.session: min(level - holder.own, holder.slots - holder.running) for holder in room}
