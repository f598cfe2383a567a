"""Cancelling a workflow, and stopping the executions of its steps.

Under the lock of its root, no further step begins. Executions that run already are cancelled afterwards, like all
others, in transactions of their own. The workflow's row lists the steps that are still to be stopped, so that any
server can go on with it.
"""

from collections.abc import Collection
from typing import Literal
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.model.executions.slice import QueuedSlice, WaitingSlice
from horae.model.workflows.decisions import decide
from horae.model.workflows.decisions.flow import FlowEnd, StepEnd
from horae.store.base import shelves
from horae.store.base.deferred import Deferred
from horae.store.executions.leaving.cancel_job import ask_to_stop
from horae.store.executions.leaving.leave import advance_waiting, as_cancelled, as_ended, leave
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, ForEach, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.workflows import locks as flow_locks
from horae.store.workflows import rows as flow_rows
from horae.store.workflows.advance import WorkflowBatch
from horae.store.workflows.rows import ALL

PARCEL: shelves.Columns = (("parcel", "uuid"),)
FANNED = Statement(
    "fanned_out_to",
    "SELECT c.step, c.child FROM flow_parcels c WHERE c.parcel = $1 AND c.item = $2 ORDER BY c.step, c.child",
)
# Locked rows are skipped: the caller searches again for rows that another transaction holds now.
PENDING = {
    "waiting": Statement(
        "children_waiting",
        f"SELECT {shelves.names(shelves.WAITING, 's.')} FROM given JOIN waiting s ON s.parcel = given.parcel"
        " WHERE s.reason <> 'children' FOR UPDATE OF s SKIP LOCKED",
    ),
    "queued": Statement(
        "children_queued",
        f"SELECT {shelves.names(shelves.QUEUED, 's.')} FROM given JOIN queued s ON s.parcel = given.parcel"
        " FOR UPDATE OF s SKIP LOCKED",
    ),
}
LEFT = Statement(
    "children_left",
    "SELECT given.parcel FROM given WHERE EXISTS (SELECT 1 FROM queued q WHERE q.parcel = given.parcel)"
    " OR EXISTS (SELECT 1 FROM waiting w WHERE w.parcel = given.parcel AND w.reason <> 'children')",
)
FLOWS = Statement(
    "children_with_children",
    "SELECT w.parcel, w.lo, w.hi FROM given JOIN waiting w ON w.parcel = given.parcel WHERE w.reason = 'children'",
)
SESSIONS = Statement(
    "sessions_of_parcels", "SELECT DISTINCT r.session FROM given JOIN running r ON r.parcel = given.parcel"
)
RUNNING = Statement(
    "children_running",
    "SELECT r.parcel, r.lo, r.hi, r.attempt FROM given JOIN running r ON r.parcel = given.parcel WHERE r.session = $2",
)

CancelVerdict = Literal["cancelled", "asked", "moving"]


def cancel(execution: UUID, reason: str, new_id: NewId, now: Instant, done: Consequences) -> Script[CancelVerdict]:
    """Cancel a workflow under way.

    Return `cancelled` when no step was running, `asked` when running steps are to be stopped, and `moving` when it has
    just ended.
    """
    if execution not in (yield from flow_locks.lock([execution])):
        return "moving"
    moves = Deferred()
    batch = WorkflowBatch(moves, new_id, now, done)
    yield from batch.load([execution])
    run = batch.runs[execution]
    if run.is_over:
        return "moving"
    if run.is_opening:
        run.end, run.is_over = FlowEnd(state="cancelled", reason=reason), True
    else:
        going_on = structs.replace(run.flow, paused=False)  # undo steps and final steps are not paused
        deciding = decide.cancel(run.plan, going_on, run.stored.about, reason, now)
        yield from run.decide(deciding, moves, now)
    yield from settle(batch, {}, new_id, now, done)
    return "cancelled" if batch.finished else "asked"


def settle(
    batch: WorkflowBatch, news: dict[UUID, list[StepEnd]], new_id: NewId, now: Instant, done: Consequences
) -> Script[None]:
    """Decide and write all changes of these workflows, and advance executions that wait for workflows that ended."""
    yield from batch.settle(news)
    yield from batch.moves.make()
    done.ended += [as_ended(f) for f in batch.finished]
    yield from advance_waiting(batch.finished, new_id, now, done)


class ToStop(Struct, frozen=True):
    """The executions of a workflow that are to be stopped: single children, and parcels of foreach steps."""

    execution: UUID
    stops: frozenset[str]
    reason: str
    children: list[tuple[UUID, UUID]]  # with their jobs
    parcels: list[UUID]


def to_stop(execution: UUID) -> Script[ToStop | None]:
    """Return the executions that a workflow's row lists to be stopped, without a lock; None when there are none."""
    held = (yield from flow_rows.flows_of([execution])).get(execution)
    if held is None or not held.stops:
        return None
    steps = (yield from flow_rows.some_steps(flow_rows.OPEN_STEPS, [held.place]))[held.place]
    mine = [(row, pin) for row, pin in steps if ALL in held.stops or row.step in held.stops]
    ended = held.stops - {ALL, *(row.step for row, _ in mine)}  # ended by a user while their executions go on
    if ended:
        mine += (yield from flow_rows.steps_of([(*held.place, step, False) for step in sorted(ended)])).values()
    fans = {row.step for row, _ in mine if row.total}
    rows = (yield Fetch(FANNED, held.place)) if fans else []
    return ToStop(
        execution=execution,
        stops=held.stops,
        reason=f"its workflow is {held.flow.state}" if ALL in held.stops else "its step has ended",
        children=[(row.execution, pin.job) for row, pin in mine if row.execution and pin and row.step not in fans],
        parcels=[child for step, child in rows if step in fans],
    )


def cancel_pending(
    shelf: str, parcels: Collection[UUID], reason: str, new_id: NewId, now: Instant, done: Consequences
) -> Script[dict[UUID, int]]:
    """Move waiting or queued slices of these parcels to history; return the number of executions by job."""
    read = shelves.waiting if shelf == "waiting" else shelves.queued
    rows = yield ForEach(PENDING[shelf], PARCEL, [(parcel,) for parcel in sorted(parcels)])
    slices: list[WaitingSlice | QueuedSlice] = [read(row) for row in rows]
    if not slices:
        return {}
    yield from leave(slices, [as_cancelled(item_slice, reason, now) for item_slice in slices], new_id, now, done)
    counts: dict[UUID, int] = {}
    for item_slice in slices:
        counts[item_slice.job] = counts.get(item_slice.job, 0) + item_slice.hi - item_slice.lo
    return counts


def left_of(parcels: Collection[UUID]) -> Script[list[UUID]]:
    """Return the parcels that still have waiting or queued slices."""
    return [row[0] for row in (yield ForEach(LEFT, PARCEL, [(parcel,) for parcel in sorted(parcels)]))]


def flows_in(parcels: Collection[UUID]) -> Script[list[UUID]]:
    """Return the workflows under way that are items of these parcels."""
    rows = yield ForEach(FLOWS, PARCEL, [(parcel,) for parcel in sorted(parcels)])
    return [execution_id(parcel, item) for parcel, lo, hi in rows for item in range(lo, hi)]


def sessions_of(parcels: Collection[UUID]) -> Script[list[UUID]]:
    """Return the sessions that run items of these parcels."""
    return sorted({row[0] for row in (yield ForEach(SESSIONS, PARCEL, [(parcel,) for parcel in sorted(parcels)]))})


def ask_session(session: UUID, parcels: Collection[UUID], reason: str, now: Instant) -> Script[int]:
    """Ask a session to stop its items of these parcels; the lock of the session keeps them from moving meanwhile."""
    yield from lock_sessions([session])
    rows = yield ForEach(RUNNING, PARCEL, [(parcel,) for parcel in sorted(parcels)], (session,))
    return (yield from ask_to_stop(session, rows, reason, now))


def finish_stops(
    execution: UUID, stops: Collection[str], new_id: NewId, now: Instant, done: Consequences
) -> Script[None]:
    """Clear the list of stops once all of them have ended or were asked to; end waiting steps without a child."""
    if execution not in (yield from flow_locks.lock([execution])):
        return
    batch = WorkflowBatch(Deferred(), new_id, now, done)
    yield from batch.load([execution])
    run = batch.runs[execution]
    if not run.stops <= set(stops):
        return
    run.stops.clear()
    steps = (yield from flow_rows.some_steps(flow_rows.OPEN_STEPS, [run.stored.place]))[run.stored.place]
    run.learn(steps)
    waits = [row for row, _ in steps if row.execution is None and (ALL in stops or row.step in stops)]
    yield from settle(batch, {execution: [_given_up(row.step) for row in waits]}, new_id, now, done)


def _given_up(step: str) -> StepEnd:
    return StepEnd(step=step, state="cancelled", reason="cancelled")
