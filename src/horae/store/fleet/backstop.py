"""Slices that a worker has held for a long time, and requests to stop them after a timeout."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.fleet.protocol import RequestKind
from horae.store.executions.leaving.cancel import request_stop
from horae.store.script import Fetch, Script, Statement

FIRST = (UUID(int=0), 0)
# It has LIMIT 1 and not EXISTS, for which PostgreSQL may read all requests.
_ASKED = "(SELECT 1 FROM requests q WHERE q.parcel = r.parcel AND q.item = r.lo AND q.kind IN "
LONG_RUNNING = Statement(
    "long_running",
    "SELECT r.parcel, r.lo, r.hi, r.session, r.granted_at, r.started_at,"
    " (SELECT g.at FROM progress g WHERE g.parcel = r.parcel AND g.item = r.lo AND g.attempt = r.attempt),"
    f" {_ASKED}('startTimeout') LIMIT 1) IS NOT NULL, p.due_at, p.job, p.version FROM running r"
    " JOIN parcels p ON p.id = r.parcel WHERE (r.parcel, r.lo) > ($1, $2) AND r.granted_at < $3"
    f" AND {_ASKED}('timeout', 'heartbeatTimeout', 'totalTimeout') LIMIT 1) IS NULL"
    " ORDER BY r.parcel, r.lo LIMIT $4",
)


class LongRunning(Struct, frozen=True):
    """A slice that a worker has held for a while and was not asked to stop because of a timeout.

    If it was asked because of a start timeout, `start_timed_out` is true.
    """

    parcel: UUID
    lo: int
    hi: int
    session: UUID
    granted_at: Instant
    started_at: Instant | None
    progress_at: Instant | None
    start_timed_out: bool
    due_at: Instant
    job: UUID
    version: int


def long_running(after: tuple[UUID, int], before: Instant, limit: int) -> Script[list[LongRunning]]:
    """Return a page of slices that were granted before an instant; the page follows the slice (parcel, lo) `after`."""
    rows = yield Fetch(LONG_RUNNING, (*after, before, limit))
    return [LongRunning(*row) for row in rows]


def ask_to_end(row: LongRunning, kind: RequestKind, now: Instant) -> Script[bool]:
    """Ask the session to stop the items of a slice; return False when all of them have left `running`."""
    asked = False
    for item in range(row.lo, row.hi):
        asked = (yield from request_stop(row.parcel, item, row.session, kind, "", now)) or asked
    return asked
