"""Consequences of changed limits: executions that wait may be admitted, and running ones get the flag of the limit."""

from uuid import UUID

from horae.env import Instant
from horae.store.admission import coarse, holder_sweep
from horae.store.base import shelves
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, ForEach, Script, Statement

PACED = Statement(
    "paced_of_job",
    "SELECT w.parcel, w.lo FROM waiting w WHERE w.job = $1 AND w.reason = 'rate' FOR UPDATE SKIP LOCKED",
)
WAKE = Statement(
    "wake_paced",
    "UPDATE waiting SET wake_at = given.at FROM given WHERE waiting.parcel = given.parcel AND waiting.lo = given.lo",
)


def apply(job: UUID, now: Instant) -> Script[list[str]]:
    """Make executions of a changed job due if they wait for a rate; return the keys for which its others wait."""
    rows = yield Fetch(PACED, (job,))
    if rows:
        yield ForEach(WAKE, (*shelves.SPAN, ("at", "bigint")), [(*row, now) for row in rows])
    return (yield from holder_sweep.gates_of(job))


def mark(session: UUID, kind: str, scope_id: int) -> Script[None]:
    """Set the flag of the running executions of a session that are under a limit of a queue or a namespace.

    The session is locked, so that its executions cannot move to another shelf meanwhile.
    """
    yield from lock_sessions([session])
    yield from coarse.mark(session, kind, scope_id)
