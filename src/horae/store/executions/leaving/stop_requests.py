"""Stored requests that tell a session to stop an execution.

When the session reports the execution, or a server takes it back from an ended session, the server reads the request
and ends or requeues the execution as requested.
"""

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct

from horae.model.executions.settle import Settler
from horae.model.executions.slice import RunningSlice, gaps
from horae.model.fleet.protocol import Outcome
from horae.store.script import ForEach, Script, Statement

STOPS = Statement(
    "stop_requests",
    "SELECT r.parcel, r.item, r.reason, r.kind FROM given JOIN requests r ON r.session = given.session"
    " WHERE r.kind IN ('cancel', 'preempt')",
)

Cancels = Mapping[tuple[UUID, int], str]  # item of a parcel -> the given reason


class StopRequests(Struct, frozen=True):
    """The items that a session was asked to stop: those to cancel, each with its reason, and those to preempt."""

    cancels: Cancels
    preempted: frozenset[tuple[UUID, int]]


NO_STOPS = StopRequests({}, frozenset())


def stops_of(session: UUID) -> Script[StopRequests]:
    """Return the items that a locked session was asked to stop."""
    rows = yield ForEach(STOPS, (("session", "uuid"),), [(session,)])
    cancels = {(parcel, item): reason for parcel, item, reason, kind in rows if kind == "cancel"}
    return StopRequests(cancels, frozenset((parcel, item) for parcel, item, _, kind in rows if kind == "preempt"))


def settle_cancelled(
    settler: Settler, running: RunningSlice, lo: int, hi: int, outcome: Outcome, cancels: Cancels
) -> list[tuple[int, int]]:
    """Settle the items of a range as cancelled if this was requested; return the ranges of the other items."""
    asked = [item for item in range(lo, hi) if (running.parcel, item) in cancels] if cancels else []  # guard: cancelled
    for item in asked:
        settler.cancel(running, item, item + 1, outcome, cancels[running.parcel, item])
    return gaps(lo, hi, [(item, item + 1) for item in asked])
