"""Reservations: a worker is kept free for an execution that needs more room than is ever free at once.

A claim skips executions that do not fit. An execution that was skipped for too long gets a worker for a while: a large
enough worker that takes nothing else, and so becomes free as its executions end.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant, Micros

PASSED_OVER: Micros = 30 * SECOND  # how long the head of a lane is skipped before a worker is reserved
MOST: Micros = 300 * SECOND  # how long a reservation lasts at most; after that, something other than room is missing
REST: Micros = 60 * SECOND  # pause before another reservation for a lane that did not use one


class Reservation(Struct, frozen=True, kw_only=True):
    """A session that claims from one lane only, beginning at `since`.

    A reservation that was given up has an `until`. It has no effect on the session any more, but until that instant it
    prevents another reservation for the lane.
    """

    lane: int
    session: UUID
    since: Instant
    until: Instant | None = None

    @property
    def binds(self) -> bool:
        return self.until is None


class LaneHead(Struct, frozen=True):
    """The first item of a lane, with the time it was queued."""

    queued_at: Instant


class SessionLoad(Struct, frozen=True):
    """A session that is large enough for a lane, with the share of its slots in use."""

    session: UUID
    share: float


def is_over(reservation: Reservation, head: LaneHead | None, live: Iterable[UUID], now: Instant) -> bool:
    """Return whether a reservation can be deleted.

    It can if the execution for which it was made has left the head of the lane, if the session has ended, or if the
    reservation was given up and the pause after that is over.
    """
    if head is None or head.queued_at > reservation.since - PASSED_OVER or reservation.session not in live:
        return True
    return not reservation.binds and reservation.until is not None and reservation.until <= now


def is_futile(reservation: Reservation, now: Instant) -> bool:
    """Return whether a reservation must be given up, because it has lasted so long that room cannot be the problem."""
    return reservation.binds and now - reservation.since > MOST


def choose_reservations(
    heads: Mapping[int, LaneHead],
    fitting: Mapping[int, Iterable[SessionLoad]],
    taken: Iterable[Reservation],
    now: Instant,
) -> list[Reservation]:
    """Reserve a worker for each lane whose head was skipped for too long: the least loaded one not reserved yet."""
    lanes = {one.lane for one in taken}
    sessions = {one.session for one in taken if one.binds}
    made = []
    for lane, head in sorted(heads.items(), key=lambda item: item[1].queued_at):
        if lane in lanes or head.queued_at > now - PASSED_OVER:
            continue
        loads = [load for load in fitting.get(lane, ()) if load.session not in sessions]
        if loads:
            best = min(loads, key=lambda load: (load.share, load.session))
            sessions.add(best.session)
            made.append(Reservation(lane=lane, session=best.session, since=now))
    return made
