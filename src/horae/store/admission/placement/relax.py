"""Relaxation: slices that waited long enough for their preferred worker move to a lane that more workers may take.

Their rank and time of arrival do not change.
"""

from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import SECOND, Instant
from horae.model.admission.placement.placement import AFFINE_WEIGHT, read_needs
from horae.store.base import shelves
from horae.store.script import Fetch, ForEach, Script, Statement

# SKIP LOCKED leaves out rows that a claim or another server has locked: it takes or moves them itself.
WAITED = Statement(
    "waited_in_lane",
    "SELECT parcel, lo, hi, rank FROM queued WHERE lane = $1 AND queued_at <= $2"
    " ORDER BY lane, rank, parcel, lo LIMIT $3 FOR UPDATE SKIP LOCKED",
)
TO_LANE = Statement(
    "to_lane",
    "UPDATE queued SET lane = given.lane FROM given WHERE queued.parcel = given.parcel AND queued.lo = given.lo",
)
MOVES: shelves.Columns = (*shelves.SPAN, ("lane", "int"))
LONGEST_WAIT = Statement("longest_wait", "SELECT min(queued_at) FROM queued WHERE lane = $1")
ADD_SIBLING = Statement(
    "add_sibling_lane",
    "INSERT INTO lanes (namespace, queue, needs, share, used_at) SELECT l.namespace, l.queue, $2, l.share, $3"
    " FROM lanes l WHERE l.id = $1 ON CONFLICT (queue, needs, share) DO NOTHING",
)
SIBLING = Statement(
    "sibling_lane",
    "SELECT s.id, s.used_at FROM lanes l JOIN lanes s ON s.queue = l.queue AND s.share = l.share AND s.needs = $2"
    " WHERE l.id = $1 FOR KEY SHARE OF s",
)
# A transaction that deletes unused lanes waits for this update, and then finds the lane used.
USED = Statement("lane_used", "UPDATE lanes SET used_at = $2 WHERE id = $1")
# Lanes that prefer a key's last worker: there is one for each worker name, and a worker may get a new name with every
# start, so unused lanes must be deleted.
FORGET = Statement(
    "forget_lanes_of_workers",
    "DELETE FROM lanes WHERE used_at < $1 AND needs LIKE $2"
    " AND NOT EXISTS (SELECT 1 FROM queued q WHERE q.lane = lanes.id)"
    " AND NOT EXISTS (SELECT 1 FROM running r WHERE r.lane = lanes.id)",
)
OF_WORKERS = f"%:{AFFINE_WEIGHT}:worker=%"
FRESH = 3600 * SECOND  # `used_at` is written only when it is older than this


class LaneMoves(Struct, frozen=True):
    """Slices that moved to other lanes."""

    rows: int  # the number of slices
    lanes: dict[int, int]  # the lanes, each with the least rank of these slices
    amounts: dict[int, int]  # the number of executions that moved, by lane


def sibling_lane(lane: int, needs: frozenset[str], now: Instant) -> Script[int]:
    """Return the lane that differs from this one only by its needs; create it if it does not exist.

    It is locked, so that it is not deleted before the transaction ends.
    """
    text = msgspec.json.encode(sorted(needs)).decode()
    is_of_worker = any(one.weight == AFFINE_WEIGHT for one in read_needs(needs).prefers)
    while True:
        yield Fetch(ADD_SIBLING, (lane, text, now if is_of_worker else 0))
        rows = yield Fetch(SIBLING, (lane, text))
        if rows:
            break  # otherwise the lane was deleted in between
    sibling, used_at = rows[0]
    if 0 < used_at < now - FRESH:  # guard: lane-use-noted
        yield Fetch(USED, (sibling, now))
    return int(sibling)


def forget_lanes(before: Instant) -> Script[None]:
    """Delete empty lanes that prefer a key's last worker and were not used since an instant."""
    yield Fetch(FORGET, (before, OF_WORKERS))


def relax(lane: int, since: Instant, needs: frozenset[str], limit: int, now: Instant) -> Script[LaneMoves]:
    """Move slices that have been queued in a lane since `since` or longer to the lane with these needs.

    Slices that another transaction has locked stay.
    """
    rows = yield Fetch(WAITED, (lane, since, limit))
    if not rows:
        return LaneMoves(0, {}, {})
    wider = yield from sibling_lane(lane, needs, now)
    return (yield from move([(parcel, lo, hi, rank, wider) for parcel, lo, hi, rank in rows]))


def move(found: list[tuple[UUID, int, int, int, int]]) -> Script[LaneMoves]:
    """Move slices, given as (parcel, lo, hi, rank, new lane). The caller has locked them."""
    lanes: dict[int, int] = {}
    amounts: dict[int, int] = {}
    for _, lo, hi, rank, lane in found:
        lanes[lane] = min(rank, lanes.get(lane, rank))
        amounts[lane] = amounts.get(lane, 0) + hi - lo
    if found:
        yield ForEach(TO_LANE, MOVES, [(parcel, lo, lane) for parcel, lo, _, _, lane in found])
    return LaneMoves(len(found), lanes, amounts)


def longest_wait(lane: int) -> Script[Instant | None]:
    """Return the instant at which the oldest slice of a lane was queued; None if the lane is empty."""
    rows = yield Fetch(LONGEST_WAIT, (lane,))
    since: Instant | None = rows[0][0]
    return since
