"""Cancel what a job still has to do: whole slices in batches, in the order of their keys."""

from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.execution import READS_AS_RUNNING
from horae.model.settle import Finished
from horae.model.slice import Queued, Waiting
from horae.store.moves import shelves
from horae.store.moves.cancel import REQUESTS
from horae.store.moves.exchange import lock_sessions
from horae.store.script import Fetch, Insert, Script, Statement

_NOT_BEGUN = ", ".join(f"'{reason}'" for reason in sorted(READS_AS_RUNNING))
# By key from where the last batch ended: a batch that began at the start would walk over what others hold again.
_BATCH = "WHERE job = $1 AND (parcel, lo) > ($2, $3)"
_ORDER = "ORDER BY parcel, lo LIMIT $4 FOR UPDATE SKIP LOCKED"
OF_JOB = {
    "waiting": Statement(
        "job_waiting",
        f"SELECT {shelves.names(shelves.WAITING)} FROM waiting {_BATCH} AND reason NOT IN ({_NOT_BEGUN}) {_ORDER}",
    ),
    "queued": Statement("job_queued", f"SELECT {shelves.names(shelves.QUEUED)} FROM queued {_BATCH} {_ORDER}"),
}
SESSIONS = Statement("sessions_of_job", "SELECT DISTINCT session FROM running WHERE job = $1 ORDER BY session")
HELD = Statement("job_running", "SELECT parcel, lo, hi, attempt FROM running WHERE session = $1 AND job = $2")

Place = tuple[UUID, int]
START: Place = (UUID(int=0), -1)


class Batch(Struct, frozen=True):
    """What one batch cancelled, and where the next begins; None when this shelf has been walked."""

    items: int
    next: Place | None


def cancel_pending(shelf: str, job: UUID, after: Place, limit: int, reason: str, now: Instant) -> Script[Batch]:
    """Put a batch of a job's waiting or queued slices on history; what a claim holds right now is left to it."""
    rows = yield Fetch(OF_JOB[shelf], (job, *after, limit))
    if not rows:
        return Batch(0, None)
    read = shelves.waiting if shelf == "waiting" else shelves.queued
    slices: list[Waiting | Queued] = [read(row) for row in rows]
    yield shelves.take(shelf, slices)
    yield shelves.put_finished([_cancelled(s, reason, now) for s in slices])
    last = slices[-1]
    return Batch(sum(s.hi - s.lo for s in slices), (last.parcel, last.lo) if len(rows) == limit else None)


def _cancelled(slice: Waiting | Queued, reason: str, now: Instant) -> Finished:
    queued_at = slice.queued_at if isinstance(slice, Queued) else None
    return Finished(slice=slice, state="cancelled", reason=reason, queued_at=queued_at, completed_at=now)


def sessions_of(job: UUID) -> Script[list[UUID]]:
    """The sessions that run something of a job."""
    rows = yield Fetch(SESSIONS, (job,))
    return [row[0] for row in rows]


def ask_session(session: UUID, job: UUID, now: Instant) -> Script[int]:
    """Ask a session to stop all it runs of a job; its row's lock keeps what it holds from moving meanwhile."""
    yield from lock_sessions([session])
    rows = yield Fetch(HELD, (session, job))
    asked = [
        (parcel, item, attempt, "cancel", session, now) for parcel, lo, hi, attempt in rows for item in range(lo, hi)
    ]
    if asked:
        yield Insert("requests", REQUESTS, asked, conflict="ON CONFLICT DO NOTHING")
    return len(asked)
