"""Relax: what has waited long enough for the worker it prefers goes to a wider lane, with its rank and its arrival."""

from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.store.moves import shelves
from horae.store.script import Fetch, ForEach, Script, Statement

# A claim and another server hold rows for a moment: whoever is later finds the lane changed, or the row gone.
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
    "INSERT INTO lanes (namespace, queue, needs, share) SELECT l.namespace, l.queue, $2, l.share FROM lanes l"
    " WHERE l.id = $1 ON CONFLICT (queue, needs, share) DO NOTHING",
)
SIBLING = Statement(
    "sibling_lane",
    "SELECT s.id FROM lanes l JOIN lanes s ON s.queue = l.queue AND s.share = l.share AND s.needs = $2 WHERE l.id = $1",
)


class Relaxed(Struct, frozen=True):
    """What went to other lanes: how many rows, and for each lane its least new rank and how many executions."""

    rows: int
    lanes: dict[int, int]
    amounts: dict[int, int]


def sibling(lane: int, needs: frozenset[str]) -> Script[int]:
    """Find or make the lane that differs from this one in its needs alone."""
    text = msgspec.json.encode(sorted(needs)).decode()
    yield Fetch(ADD_SIBLING, (lane, text))
    rows = yield Fetch(SIBLING, (lane, text))
    return int(rows[0][0])


def relax(lane: int, since: Instant, needs: frozenset[str], limit: int) -> Script[Relaxed]:
    """Move what is queued in a lane since this instant or longer to the one with these needs.

    What somebody holds right now stays.
    """
    rows = yield Fetch(WAITED, (lane, since, limit))
    if not rows:
        return Relaxed(0, {}, {})
    wider = yield from sibling(lane, needs)
    return (yield from _move([(parcel, lo, hi, rank, wider) for parcel, lo, hi, rank in rows]))


def _move(found: list[tuple[UUID, int, int, int, int]]) -> Script[Relaxed]:
    lanes: dict[int, int] = {}
    amounts: dict[int, int] = {}
    for _, lo, hi, rank, lane in found:
        lanes[lane] = min(rank, lanes.get(lane, rank))
        amounts[lane] = amounts.get(lane, 0) + hi - lo
    if found:
        yield ForEach(TO_LANE, MOVES, [(parcel, lo, lane) for parcel, lo, _, _, lane in found])
    return Relaxed(len(found), lanes, amounts)


def longest_wait(lane: int) -> Script[Instant | None]:
    """Since when the oldest of a lane is queued."""
    rows = yield Fetch(LONGEST_WAIT, (lane,))
    since: Instant | None = rows[0][0]
    return since
