"""Prefetched executions: reads of those that a worker holds but has not started, and of queued ones that rank first."""

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
    """The first executions of a lane, up to some rank."""

    rank: int  # the least rank
    count: int  # the number of executions


def fronts_of(lanes: Sequence[tuple[int, int]]) -> Script[dict[int, LaneFront]]:
    """Return the first executions of lanes, up to a rank given for each; at most 64 slices of each lane are counted."""
    rows = yield ForEach(FIRST_IN, (("lane", "int"), ("rank", "bigint")), sorted(lanes))
    found: dict[int, LaneFront] = {}
    for lane, rank, count in rows:
        known = found.get(lane, LaneFront(rank, 0))
        found[lane] = LaneFront(min(rank, known.rank), known.count + count)
    return found


def held_ready(session: UUID, queue: int, after: int, others: bool) -> Script[list[Range]]:
    """Return the ranges of executions that a session holds and has not started.

    They are those of a queue that rank after `after`, and with `others` also those of all other queues.
    """
    rows = yield Fetch(UNSTARTED, (session, queue, after, others))
    return [Range(parcel=parcel, lo=lo, hi=hi, attempt=attempt) for parcel, lo, hi, attempt in rows]
