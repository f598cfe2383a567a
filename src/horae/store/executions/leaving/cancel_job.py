"""Cancellation of the executions of a deleted job: whole slices in batches, in the order of (parcel, lo).

The job's row stores which executions the deletion still has to end, so that another server goes on after a crash. A
submission holds the lock of its job's row, so a deletion sees all executions that were accepted before it.
"""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.model.executions.execution import READS_AS_RUNNING
from horae.model.executions.slice import QueuedSlice, WaitingSlice
from horae.store.base import shelves
from horae.store.executions.leaving.leave import as_cancelled, leave
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, Insert, Rows, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId

_BEGUN = ", ".join(f"'{reason}'" for reason in sorted(READS_AS_RUNNING))
# A batch begins after the last slice of the batch before it. If it began at the start, it would read slices that other
# transactions have locked again and again.
_BATCH = "WHERE job = $1 AND (parcel, lo) > ($2, $3)"
_ORDER = "ORDER BY parcel, lo LIMIT $4 FOR UPDATE SKIP LOCKED"
OF_JOB = {
    "waiting": Statement(
        "job_waiting",
        f"SELECT {shelves.names(shelves.WAITING)} FROM waiting {_BATCH} AND reason NOT IN ({_BEGUN}) {_ORDER}",
    ),
    "queued": Statement("job_queued", f"SELECT {shelves.names(shelves.QUEUED)} FROM queued {_BATCH} {_ORDER}"),
}
# Suspended executions have begun, but no worker runs them that could be asked to stop them. Workflows are cancelled by
# a script of their own.
ASLEEP = Statement(
    "job_asleep",
    f"SELECT {shelves.names(shelves.WAITING)} FROM waiting {_BATCH} AND reason IN ({_BEGUN})"
    f" AND reason <> 'children' {_ORDER}",
)
WORKFLOWS = Statement(
    "job_workflows", "SELECT parcel, lo FROM waiting WHERE job = $1 AND reason = 'children' ORDER BY parcel, lo"
)
SESSIONS = Statement("sessions_of_job", "SELECT DISTINCT session FROM running WHERE job = $1 ORDER BY session")
HELD = Statement("job_running", "SELECT parcel, lo, hi, attempt FROM running WHERE session = $1 AND job = $2")
# Both shelves are read by one statement, so that a slice which a promotion moves is seen on one of them.
PENDING = Statement(
    "job_pending",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM queued WHERE job = $1)"
    f" OR EXISTS (SELECT 1 FROM waiting WHERE job = $1 AND reason NOT IN ({_BEGUN}))",
)
UNFINISHED = Statement("unfinished_deletions", "SELECT id FROM jobs WHERE ending IS NOT NULL ORDER BY id LIMIT 100")
ENDING = Statement("ending_of_job", "SELECT ending FROM jobs WHERE id = $1")
# FOR KEY SHARE: a restoration of the job waits for this batch, and this batch for a restoration. So executions that are
# accepted after a restoration are not cancelled.
STILL_ENDING = Statement(
    "still_ending", "SELECT id FROM jobs WHERE id = $1 AND ending IN ('pending', 'all') FOR KEY SHARE"
)
STILL_STOPPING = Statement(
    "still_stopping", "SELECT id FROM jobs WHERE id = $1 AND ending IN ('running', 'all') FOR KEY SHARE"
)
SETTLE = Statement("settle_deletion", "UPDATE jobs SET ending = NULL WHERE id = $1 AND ending = $2")
ASK = Statement(
    "ask_ending",
    "UPDATE jobs SET ending = CASE WHEN ending IS NULL OR ending = $2 THEN $2 ELSE 'all' END"
    " WHERE id = $1 AND state = 'deleted'",
)

Ending = Literal["pending", "running", "all"]
Place = tuple[UUID, int]
START: Place = (UUID(int=0), -1)


class CancelBatch(Struct, frozen=True):
    """The number of executions that a batch cancelled, and the slice after which the next batch begins.

    `next` is None after the last batch.
    """

    items: int
    next: Place | None


def cancel_pending(
    shelf: str,
    job: UUID,
    new_id: NewId,
    after: Place,
    limit: int,
    reason: str,
    now: Instant,
    consequences: Consequences | None = None,
) -> Script[CancelBatch]:
    """Cancel a batch of a job's waiting or queued slices; skip slices that another transaction, such as a claim, locks.

    Dependent jobs advance; `consequences` collects the executions that were started because of this.
    """
    rows = yield Fetch(OF_JOB[shelf], (job, *after, limit))
    return (yield from cancel_batch(shelf, rows, limit, new_id, reason, now, consequences))


def cancel_batch(
    shelf: str, rows: Rows, limit: int, new_id: NewId, reason: str, now: Instant, consequences: Consequences | None
) -> Script[CancelBatch]:
    """Cancel slices, given by their locked rows; fewer rows than the limit are the last batch."""
    if not rows:
        return CancelBatch(0, None)
    read = shelves.waiting if shelf == "waiting" else shelves.queued
    slices: list[WaitingSlice | QueuedSlice] = [read(row) for row in rows]
    yield from cancel_slices(slices, new_id, reason, now, consequences)
    last = slices[-1]
    return CancelBatch(sum(s.hi - s.lo for s in slices), (last.parcel, last.lo) if len(rows) == limit else None)


def cancel_slices(
    slices: Sequence[WaitingSlice | QueuedSlice],
    new_id: NewId,
    reason: str,
    now: Instant,
    consequences: Consequences | None = None,
) -> Script[None]:
    """Cancel slices that the caller has locked; `consequences` collects the executions that start because of this."""
    ended = [as_cancelled(s, reason, now) for s in slices]
    yield from leave(slices, ended, new_id, now, Consequences() if consequences is None else consequences)


def cancel_more(
    shelf: str,
    job: UUID,
    new_id: NewId,
    after: Place,
    limit: int,
    reason: str,
    now: Instant,
    consequences: Consequences | None = None,
) -> Script[CancelBatch]:
    """Cancel the next batch of a deletion, unless the job was restored meanwhile."""
    if not (yield Fetch(STILL_ENDING, (job,))):
        return CancelBatch(0, None)
    return (yield from cancel_pending(shelf, job, new_id, after, limit, reason, now, consequences))


def cancel_asleep(
    job: UUID,
    new_id: NewId,
    after: Place,
    limit: int,
    reason: str,
    now: Instant,
    consequences: Consequences | None = None,
) -> Script[CancelBatch]:
    """Cancel the next batch of suspended executions of a deleted job, unless it was restored meanwhile."""
    if not (yield from is_stopping(job)):
        return CancelBatch(0, None)
    rows = yield Fetch(ASLEEP, (job, *after, limit))
    return (yield from cancel_batch("waiting", rows, limit, new_id, reason, now, consequences))


def is_stopping(job: UUID) -> Script[bool]:
    """Tell whether the deletion of a job still has to stop what has begun; until the commit, it is not restored."""
    return bool((yield Fetch(STILL_STOPPING, (job,))))


def is_pending(job: UUID) -> Script[bool]:
    """Tell whether a job has executions that have not begun: queued ones, or waiting ones that are not suspended."""
    return bool((yield Fetch(PENDING, (job,))))


def unfinished() -> Script[list[UUID]]:
    """Return deleted jobs with executions that are still to be ended."""
    rows = yield Fetch(UNFINISHED)
    return [row[0] for row in rows]


def ending_of(job: UUID) -> Script[Ending | None]:
    """Return which executions the deletion of a job still has to end: None when it is done."""
    rows = yield Fetch(ENDING, (job,))
    return rows[0][0] if rows else None


def add_ending(job: UUID, ending: Ending) -> Script[None]:
    """Add to the executions that the deletion of a job, which is already deleted, has to end."""
    yield Fetch(ASK, (job, ending))


def settle_deletion(job: UUID, ended: Ending) -> Script[None]:
    """Mark a deletion as done, unless it was extended meanwhile."""
    yield Fetch(SETTLE, (job, ended))


def workflows_of(job: UUID) -> Script[list[UUID]]:
    """Return the workflows of a job that wait for their steps."""
    return [execution_id(parcel, item) for parcel, item in (yield Fetch(WORKFLOWS, (job,)))]


def sessions_of(job: UUID) -> Script[list[UUID]]:
    """Return the sessions that run executions of a job."""
    rows = yield Fetch(SESSIONS, (job,))
    return [row[0] for row in rows]


def ask_session(session: UUID, job: UUID, reason: str, now: Instant) -> Script[int]:
    """Ask a session to stop all its executions of a job; they cannot move, because the session's row is locked."""
    yield from lock_sessions([session])  # guard: ask-locks-session
    rows = yield Fetch(HELD, (session, job))
    return (yield from ask_to_stop(session, rows, reason, now))


def ask_to_stop(session: UUID, rows: Rows, reason: str, now: Instant) -> Script[int]:
    """Ask a locked session to stop ranges of items, each with its attempt; return the number of executions."""
    asked = [
        (parcel, item, attempt, "cancel", session, reason, now)
        for parcel, lo, hi, attempt in rows
        for item in range(lo, hi)
    ]
    if asked:
        yield Insert("requests", shelves.REQUESTS, asked, conflict="ON CONFLICT DO NOTHING")
    return len(asked)
