"""Timeouts in the queue and in total: executions that exceed them end.

A parcel with such a timeout has one row in `timeouts`, with the earliest instant at which an item may exceed it. The
parcel is not checked before that instant, and no script that moves slices has to update the row. Items that a worker
holds are stopped by the worker.
"""

from collections.abc import Sequence
from uuid import UUID

from horae.env import SECOND, Instant, Micros
from horae.model.definitions.retry import TIMEOUTS
from horae.model.definitions.timeouts import ParcelTimeouts
from horae.model.executions.settle import FinishedSlice
from horae.model.executions.slice import QueuedSlice, Slice, WaitingSlice
from horae.model.fleet.protocol import Failure
from horae.store.base import shelves
from horae.store.executions.leaving.effects import Effects, merge_started
from horae.store.executions.leaving.leave import leave
from horae.store.executions.parcels import BOUNDS
from horae.store.executions.state_changes import FinishedItems, is_step
from horae.store.script import Fetch, ForEach, Row, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId

DUE = Statement(
    "timeouts_due",
    f"SELECT {shelves.names(BOUNDS)} FROM timeouts WHERE at <= $1 ORDER BY at, parcel LIMIT $2 FOR UPDATE SKIP LOCKED",
)
NEXT = Statement("next_timeout", "SELECT min(at) FROM timeouts")
WAITING = Statement(
    "waiting_of_parcels",
    f"SELECT {shelves.names(shelves.WAITING, 's.')} FROM given JOIN waiting s ON s.parcel = given.parcel"
    " WHERE s.reason <> 'children' FOR UPDATE OF s SKIP LOCKED",
)
QUEUED = Statement(
    "queued_of_parcels",
    f"SELECT {shelves.names(shelves.QUEUED, 's.')} FROM given JOIN queued s ON s.parcel = given.parcel"
    " FOR UPDATE OF s SKIP LOCKED",
)


def _items(shelf: str) -> str:
    """Return SQL that counts a parcel's items on a shelf, except running workflows, which check their own timeouts."""
    more = " AND s.reason <> 'children'" if shelf == "waiting" else ""
    return f"(SELECT coalesce(sum(s.hi - s.lo), 0) FROM {shelf} s WHERE s.parcel = given.parcel{more})"


# One statement, because several could miss a slice that moves between shelves. Items on none of these shelves have
# ended. Items are counted, not slices: a claim that cuts a slice leaves the number of slices unchanged.
REMAINING = Statement(
    "standing_of_parcels",
    f"SELECT given.parcel, {_items('queued')} + {_items('waiting')}, {_items('running')} FROM given",
)
SET_NEXT_CHECK = Statement(
    "set_timeout", "UPDATE timeouts SET at = given.at FROM given WHERE timeouts.parcel = given.parcel"
)
DROP = Statement("drop_timeouts", "DELETE FROM timeouts USING given WHERE timeouts.parcel = given.parcel")
PARCEL: shelves.Columns = (("parcel", "uuid"),)
SOON: Micros = SECOND // 4  # slices that another transaction has locked are checked again after this time


def end_overdue(limit: int, new_id: NewId, now: Instant) -> Script[tuple[int, Effects]]:
    """Check parcels with items that may exceed a timeout; return their number, and the effects of ended items."""
    due = yield Fetch(DUE, (now, limit))
    if not due:
        return 0, Effects()
    given = [(row[0],) for row in due]
    remaining = {row[0]: (row[1], row[2]) for row in (yield ForEach(REMAINING, PARCEL, given))}
    held: dict[UUID, list[WaitingSlice | QueuedSlice]] = {row[0]: [] for row in due}
    for row in (yield ForEach(WAITING, PARCEL, given)):
        held[row[0]].append(shelves.waiting(row))
    for row in (yield ForEach(QUEUED, PARCEL, given)):
        held[row[0]].append(shelves.queued(row))
    ended: list[FinishedSlice] = []
    later: list[tuple[UUID, Instant]] = []
    for row in due:
        over, again = _check(_patience(row), held[row[0]], remaining[row[0]], now)
        ended += over
        if again is not None:
            later.append((row[0], again))
    looked = {parcel for parcel, _ in later}
    places = {(f.slice.parcel, f.slice.lo) for f in ended}
    consequences = Consequences()
    yield from leave(
        [s for slices in held.values() for s in slices if (s.parcel, s.lo) in places],
        ended, new_id, now, consequences,
        ForEach(SET_NEXT_CHECK, (("parcel", "uuid"), ("at", "bigint")), later),
        ForEach(DROP, PARCEL, [one for one in given if one[0] not in looked]),
    )  # fmt: skip
    return len(due), _effects(ended, consequences, now)


def _patience(row: Row) -> ParcelTimeouts:
    _, _, due_at, queue, total = row
    return ParcelTimeouts(due_at=due_at, queue=queue, total=total)


def _check(
    patience: ParcelTimeouts, held: Sequence[WaitingSlice | QueuedSlice], remaining: tuple[int, int], now: Instant
) -> tuple[list[FinishedSlice], Instant | None]:
    """Return the slices of a parcel that end, and the instant of the next check, or None if none is needed.

    `remaining` has the number of items that wait or are queued, and of those that run. If fewer items are in `held`
    than wait or are queued, another transaction has locked the missing ones, and the next check is soon.
    """
    over = [item_slice for item_slice in held if patience.is_over(item_slice, now)]
    left = [item_slice for item_slice in held if item_slice not in over]
    waited, runs = remaining
    again = patience.next_check(left, runs > 0, now)
    if sum(item_slice.hi - item_slice.lo for item_slice in held) < waited:  # guard: overdue-held-elsewhere
        again = now + SOON if again is None else min(again, now + SOON)
    if not over:
        return [], again
    failure = patience.failure(now)
    reason = TIMEOUTS[failure.type]
    return [_finished(item_slice, failure, reason, now) for item_slice in over], again


def _finished(item_slice: Slice, failure: Failure, reason: str, now: Instant) -> FinishedSlice:
    queued_at = item_slice.queued_at if isinstance(item_slice, QueuedSlice) else None
    return FinishedSlice(
        slice=item_slice, state="failed", reason=reason, queued_at=queued_at, completed_at=now, error=failure
    )


def _effects(ended: Sequence[FinishedSlice], consequences: Consequences, now: Instant) -> Effects:
    slices = [f.slice for f in ended]
    effects = Effects()
    effects.ended += [
        FinishedItems(s.parcel, s.lo, s.hi, s.job, s.namespace, "failed", 0, step=is_step(s.flags), at=now)
        for s in slices
    ]
    merge_started(effects, consequences)
    return effects


def next_due() -> Script[Instant | None]:
    """Return the instant at which the next parcel is due to be checked."""
    rows = yield Fetch(NEXT)
    at: Instant | None = rows[0][0]
    return at
