"""Cancellation of an item: a waiting or queued item ends at once; for a running item, its worker is asked to stop it.

Only the session of a running slice moves it. So the request is stored, and the session's next exchange delivers it.
"""

from typing import Literal
from uuid import UUID

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.model.executions.slice import part
from horae.model.fleet.protocol import RequestKind
from horae.store.base import shelves
from horae.store.executions.leaving.leave import as_cancelled, leave
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, Insert, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.workflows import cancel as workflow_cancel

ON_WAITING = Statement(
    "item_waiting",
    f"SELECT {shelves.names(shelves.WAITING)} FROM waiting WHERE parcel = $1 AND lo <= $2 AND hi > $2"
    " AND reason <> 'children' FOR UPDATE SKIP LOCKED",
)
# A workflow whose steps run ends after its steps: another script cancels it, under the lock of the workflow.
WITH_CHILDREN = Statement(
    "item_with_children", "SELECT 1 FROM waiting WHERE parcel = $1 AND lo = $2 AND reason = 'children'"
)
ON_QUEUED = Statement(
    "item_queued",
    f"SELECT {shelves.names(shelves.QUEUED)} FROM queued WHERE parcel = $1 AND lo <= $2 AND hi > $2"
    " FOR UPDATE SKIP LOCKED",
)
ON_RUNNING = Statement(
    "item_running", "SELECT session, attempt FROM running WHERE parcel = $1 AND lo <= $2 AND hi > $2"
)
ON_HISTORY = Statement("item_history", "SELECT state FROM history WHERE parcel = $1 AND lo <= $2 AND hi > $2")

CancelVerdict = Literal["cancelled", "ended", "asked", "final", "moving", "unknown"]


def cancel(
    parcel: UUID, item: int, reason: str, now: Instant, new_id: NewId, consequences: Consequences | None = None
) -> Script[tuple[CancelVerdict, UUID | None]]:
    """Try to cancel one item. After the verdict `moving` the caller tries again in a new transaction.

    With the verdict `asked`, the session that was asked is returned. With the verdict `ended`, the item is a workflow
    that has ended now; `consequences` has it among the ended workflows. Dependent jobs and executions that wait for the
    item's keys advance; `consequences` collects the executions that were started because of this.
    """
    consequences = Consequences() if consequences is None else consequences
    for shelf, find in (("waiting", ON_WAITING), ("queued", ON_QUEUED)):
        rows = yield Fetch(find, (parcel, item))
        if rows:
            found = shelves.waiting(rows[0]) if shelf == "waiting" else shelves.queued(rows[0])
            ended = as_cancelled(part(found, item, item + 1), reason, now)
            yield from leave([found], [ended], new_id, now, consequences)
            return "cancelled", None
    rows = yield Fetch(ON_RUNNING, (parcel, item))
    if rows:
        return (yield from _ask(parcel, item, rows[0][0], reason, now))
    if (yield Fetch(WITH_CHILDREN, (parcel, item))):
        return (yield from workflow_cancel.cancel(execution_id(parcel, item), reason, new_id, now, consequences)), None
    rows = yield Fetch(ON_HISTORY, (parcel, item))
    if rows:
        return "final", None
    exists = yield Fetch(EXISTS, (parcel, item))
    return ("moving", None) if exists else ("unknown", None)


EXISTS = Statement("item_exists", "SELECT 1 FROM parcels WHERE id = $1 AND n > $2")


def _ask(
    parcel: UUID, item: int, session: UUID, reason: str, now: Instant
) -> Script[tuple[CancelVerdict, UUID | None]]:
    """Ask the session of a running item to stop it; return `moving` if the item has just moved."""
    asked = yield from request_stop(parcel, item, session, "cancel", reason, now)
    return ("asked", session) if asked else ("moving", None)


def request_stop(parcel: UUID, item: int, session: UUID, kind: RequestKind, reason: str, now: Instant) -> Script[bool]:
    """Store a request for a running item under the lock of its session; return False when the item has moved."""
    yield from lock_sessions([session])  # guard: cancel-locks-session
    rows = yield Fetch(ON_RUNNING, (parcel, item))
    if not rows or rows[0][0] != session:
        return False
    row = (parcel, item, rows[0][1], kind, session, reason, now)
    yield Insert("requests", shelves.REQUESTS, [row], conflict="ON CONFLICT DO NOTHING")  # guard: cancel-asked-once
    return True
