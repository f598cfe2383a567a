"""Slices that run for long, and requests to end them."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.store.moves.cancel import ask
from horae.store.script import Fetch, Script, Statement

FIRST = (UUID(int=0), 0)
LONG_RUNNING = Statement(
    "long_running",
    "SELECT r.parcel, r.lo, r.hi, r.session, coalesce(r.started_at, r.granted_at), p.job, p.version FROM running r"
    " JOIN parcels p ON p.id = r.parcel WHERE (r.parcel, r.lo) > ($1, $2) AND r.granted_at < $3"
    " AND NOT EXISTS (SELECT 1 FROM requests q WHERE q.parcel = r.parcel AND q.item = r.lo AND q.kind = 'timeout')"
    " ORDER BY r.parcel, r.lo LIMIT $4",
)


class LongRunning(Struct, frozen=True):
    """A slice that has run for a while and was not asked to end."""

    parcel: UUID
    lo: int
    hi: int
    session: UUID
    since: Instant
    job: UUID
    version: int


def long_running(after: tuple[UUID, int], before: Instant, limit: int) -> Script[list[LongRunning]]:
    """Slices granted before an instant, in pages."""
    rows = yield Fetch(LONG_RUNNING, (*after, before, limit))
    return [LongRunning(*row) for row in rows]


def ask_to_end(row: LongRunning, now: Instant) -> Script[bool]:
    """Ask the session to end these items; false when they have moved."""
    asked = False
    for item in range(row.lo, row.hi):
        asked = (yield from ask(row.parcel, item, row.session, "timeout", "", now)) or asked
    return asked
