"""Affinity: executions with the same affinity key prefer the worker that last executed one of them.

The last worker of each key is stored. Later executions of the key move to a lane that prefers this worker.
"""

from collections.abc import Sequence

from horae.env import Instant
from horae.model.admission.keys import keys_of
from horae.model.admission.placement.placement import resolve_affinity
from horae.model.base.duration import DAY
from horae.model.executions.slice import RunningSlice
from horae.store.admission.placement.relax import LaneMoves, move, sibling_lane
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Insert, Script, Statement

REMEMBERED = 7 * DAY  # how long the last worker of a key is remembered
UNDIRECTED = Statement(
    "undirected",
    "SELECT q.parcel, q.lo, q.hi, q.rank, q.job, p.keys FROM queued q JOIN parcels p ON p.id = q.parcel"
    " WHERE q.lane = $1 ORDER BY q.lane, q.rank, q.parcel, q.lo LIMIT $2 FOR UPDATE OF q SKIP LOCKED",
)
HAD_LAST = Statement(
    "had_last",
    "SELECT a.job, a.key, a.worker FROM given JOIN affinities a ON a.job = given.job AND a.key = given.key",
)
HAVE = Statement(
    "have_now",
    "SELECT p.job, p.keys, s.worker FROM given JOIN parcels p ON p.id = given.parcel"
    " JOIN sessions s ON s.id = given.session",
)
GRANT: Columns = (("parcel", "uuid"), ("session", "uuid"))
KEY: Columns = (("job", "uuid"), ("key", "text"))
COLUMNS: Columns = (*KEY, ("worker", "text"), ("until", "bigint"))


def direct(lane: int, needs: frozenset[str], limit: int, now: Instant) -> Script[LaneMoves]:
    """Move slices of a lane to lanes that prefer the last worker of their affinity key.

    Slices without such a worker move to a lane without the preference. Slices that another transaction has locked stay.
    """
    rows = yield Fetch(UNDIRECTED, (lane, limit))
    if not rows:
        return LaneMoves(0, {}, {})
    wanted = sorted({(row[4], key) for row in rows if (key := keys_of(row[5]).affinity) is not None})
    known = yield ForEach(HAD_LAST, KEY, wanted)
    last = {(job, key): worker for job, key, worker in known}
    workers = [last.get((row[4], keys_of(row[5]).affinity)) for row in rows]
    lanes: dict[str | None, int] = {}
    # Sorted, so that concurrent transactions that create these lanes do not deadlock.
    for worker in sorted(set(workers), key=lambda worker: worker or ""):
        lanes[worker] = yield from sibling_lane(lane, resolve_affinity(needs, worker), now)
    found = [(*row[:4], lanes[worker]) for row, worker in zip(rows, workers, strict=True)]
    return (yield from move(found))


def remember(granted: Sequence[RunningSlice], now: Instant) -> Script[None]:
    """Record the workers of granted slices as the last workers of their affinity keys."""
    rows = yield ForEach(HAVE, GRANT, sorted({(running.parcel, running.session) for running in granted}))
    have = {(job, key): worker for job, keys, worker in rows if (key := keys_of(keys).affinity) is not None}
    given = [(job, key, worker, now + REMEMBERED) for (job, key), worker in sorted(have.items())]
    if given:
        update = "worker = excluded.worker, until = excluded.until"
        yield Insert("affinities", COLUMNS, given, conflict=f"ON CONFLICT (job, key) DO UPDATE SET {update}")
