"""Reservations: what needs more room than is ever free at once keeps a worker from being filled up with less.

A claim passes over what does not fit. What was passed over for too long gets a worker of its own for a while: one that
is large enough, takes nothing else, and so becomes free enough by what ends there.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant, Micros

PASSED_OVER: Micros = 30 * SECOND  # how long the first of a lane is passed over before a worker is reserved for it
MOST: Micros = 300 * SECOND  # how long a worker stands idle for it at most; it is not room that is lacking then
REST: Micros = 60 * SECOND  # before a worker is reserved again for a lane that did not take it


class Reservation(Struct, frozen=True, kw_only=True):
    """A session that takes from one lane only, since then; one that was given up stays for a rest, and binds nobody."""

    lane: int
    session: UUID
    since: Instant
    until: Instant | None = None

    @property
    def binds(self) -> bool:
        return self.until is None


class LaneHead(Struct, frozen=True):
    """The first of a lane: when it was queued."""

    queued_at: Instant


class SessionLoad(Struct, frozen=True):
    """A session that is large enough for a lane: the share of its slots in use."""

    session: UUID
    share: float


def is_over(reservation: Reservation, head: LaneHead | None, live: Iterable[UUID], now: Instant) -> bool:
    """Whether a reservation has had its effect, or can have none."""
    if head is None or head.queued_at > reservation.since - PASSED_OVER or reservation.session not in live:
        return True
    return not reservation.binds and reservation.until is not None and reservation.until <= now


def is_vain(reservation: Reservation, now: Instant) -> bool:
    """Whether something else than room keeps the lane from its worker."""
    return reservation.binds and now - reservation.since > MOST


def choose(
    heads: Mapping[int, LaneHead],
    fitting: Mapping[int, Iterable[SessionLoad]],
    taken: Iterable[Reservation],
    now: Instant,
) -> list[Reservation]:
    """A worker for each lane whose first was passed over for too long: the least loaded that nobody else has."""
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
