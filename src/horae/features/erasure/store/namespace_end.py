"""Cancellation of all executions in a namespace.

Waiting and queued executions end at once. For running ones, the sessions that hold them are requested to stop them.
"""

from uuid import UUID

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.store.base import shelves
from horae.store.executions.leaving.cancel_job import CancelBatch, Place, ask_to_stop, cancel_batch
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, Script, Statement
from horae.store.tenancy.holdings import PendingWork
from horae.store.triggers.dependencies.starts import Consequences, NewId

_BATCH = "WHERE namespace = $1 AND (parcel, lo) > ($2, $3) AND parcel < $4"
_ORDER = "ORDER BY parcel, lo LIMIT $5 FOR UPDATE SKIP LOCKED"
# Executions that wait for children are workflows, which are cancelled separately.
PENDING = {
    "waiting": Statement(
        "namespace_waiting",
        f"SELECT {shelves.names(shelves.WAITING)} FROM waiting {_BATCH} AND reason <> 'children' {_ORDER}",
    ),
    "queued": Statement("namespace_queued", f"SELECT {shelves.names(shelves.QUEUED)} FROM queued {_BATCH} {_ORDER}"),
}
WORKFLOWS = Statement(
    "namespace_workflows",
    "SELECT parcel, lo FROM waiting WHERE namespace = $1 AND parcel < $2 AND reason = 'children' ORDER BY parcel, lo"
    " LIMIT $3",
)
SESSIONS = Statement(
    "namespace_sessions", "SELECT DISTINCT session FROM running WHERE namespace = $1 AND parcel < $2 ORDER BY session"
)
HELD = Statement(
    "namespace_running",
    "SELECT parcel, lo, hi, attempt FROM running WHERE session = $1 AND namespace = $2 AND parcel < $3",
)
LIVE = Statement(
    "namespace_live",
    "SELECT "
    + " + ".join(
        f"(SELECT coalesce(sum(hi - lo), 0) FROM {shelf} WHERE namespace = $1 AND parcel < $2)"
        for shelf in ("waiting", "queued", "running")
    ),
)


def live(namespace: int, before: UUID) -> Script[int]:
    """Count executions of a namespace in parcels before a parcel that have not ended."""
    ((count,),) = yield Fetch(LIVE, (namespace, before))
    return int(count)


def under_way(kind: PendingWork, namespace: int, before: Instant) -> Script[list[UUID]]:
    """Return the ids of unfinished work of one kind, such as backfills, that began before an instant."""
    return [row[0] for row in (yield Fetch(kind.open, (namespace, before)))]


def cancel_pending(
    shelf: str, namespace: int, new_id: NewId, after: Place, before: UUID, limit: int, reason: str, now: Instant,
    consequences: Consequences,
) -> Script[CancelBatch]:  # fmt: skip
    """Cancel a batch of waiting or queued executions.

    Because of SKIP LOCKED, slices that another transaction has locked, such as a claim, are left to that transaction.
    """
    rows = yield Fetch(PENDING[shelf], (namespace, *after, before, limit))
    return (yield from cancel_batch(shelf, rows, limit, new_id, reason, now, consequences))


def workflows(namespace: int, before: UUID, limit: int) -> Script[list[UUID]]:
    """Return up to `limit` executions that run workflows and wait for their steps."""
    return [execution_id(parcel, item) for parcel, item in (yield Fetch(WORKFLOWS, (namespace, before, limit)))]


def sessions(namespace: int, before: UUID) -> Script[list[UUID]]:
    """Return the sessions that run executions of a namespace."""
    return [row[0] for row in (yield Fetch(SESSIONS, (namespace, before)))]


def ask_session(session: UUID, namespace: int, before: UUID, reason: str, now: Instant) -> Script[None]:
    """Request a session to stop all executions of a namespace.

    The session is locked, so that its executions do not leave the shelf `running` meanwhile.
    """
    yield from lock_sessions([session])
    rows = yield Fetch(HELD, (session, namespace, before))
    yield from ask_to_stop(session, rows, reason, now)
