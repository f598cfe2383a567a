"""Executions that workers hold ready, and the queued ones that rank before them."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from horae.model.fleet.protocol import Range
from horae.store.script import Fetch, ForEach, Script, Statement

MOST = 64  # slices to read per lane
FIRST_IN = Statement(
    "first_in_lanes",
    "SELECT q.* FROM given CROSS JOIN LATERAL (SELECT lane, rank, hi - lo FROM queued WHERE lane = given.lane"
    f" AND rank <= given.rank ORDER BY rank LIMIT {MOST}) q",
)
UNSTARTED = Statement(
    "held_ready",
    "SELECT parcel, lo, hi, attempt FROM running WHERE session = $1 AND started_at IS NULL"
    " AND ((queue = $2 AND rank > $3) OR (queue <> $2 AND $4)) ORDER BY parcel, lo",
)


class LaneFront(Struct, frozen=True):
    """The front of a lane, down to a rank: the least rank, and the number of executions."""

    rank: int
    count: int


def fronts_of(lanes: Sequence[tuple[int, int]]) -> Script[dict[int, LaneFront]]:
    """Return the fronts of these lanes down to these ranks."""
    rows = yield ForEach(FIRST_IN, (("lane", "int"), ("rank", "bigint")), sorted(lanes))
    found: dict[int, LaneFront] = {}
    for lane, rank, count in rows:
        known = found.get(lane, LaneFront(rank, 0))
        found[lane] = LaneFront(min(rank, known.rank), known.count + count)
    return found


def held_ready(session: UUID, queue: int, after: int, others: bool) -> Script[list[Range]]:
    """Return the ranges that a session holds and has not started: those of a queue after a rank and, with `others`,
    those of all other queues.
    """
    rows = yield Fetch(UNSTARTED, (session, queue, after, others))
    return [Range(parcel=parcel, lo=lo, hi=hi, attempt=attempt) for parcel, lo, hi, attempt in rows]
