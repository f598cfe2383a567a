"""Cancelling a workflow, and stopping the executions of its steps.

The transaction that cancels a workflow holds the lock of its root and only records that no further step begins.
Executions of steps that have begun are cancelled later, in transactions of their own, like all other executions. The
workflow's row lists the steps that are still to be stopped, so that any server can continue this work.
"""

from collections.abc import Collection
from typing import Literal
from uuid import UUID

from msgspec import Struct, structs

from horae.env import Instant
from horae.model.base.ids import execution_id
from horae.model.executions.slice import QueuedSlice, WaitingSlice
from horae.model.workflows.decisions import decide
from horae.model.workflows.decisions.workflow import StepEnd, WorkflowResult
from horae.store.base import shelves
from horae.store.base.deferred import Deferred
from horae.store.executions.leaving.cancel_job import ask_to_stop
from horae.store.executions.leaving.leave import advance_waiting, as_cancelled, as_ended, leave
from horae.store.fleet.exchange import lock_sessions
from horae.store.script import Fetch, ForEach, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.workflows import locks as workflow_locks
from horae.store.workflows import rows as workflow_rows
from horae.store.workflows.advance import WorkflowBatch
from horae.store.workflows.rows import ALL

PARCEL: shelves.Columns = (("parcel", "uuid"),)
FANNED = Statement(
    "fanned_out_to",
    "SELECT c.step, c.child FROM flow_parcels c WHERE c.parcel = $1 AND c.item = $2 ORDER BY c.step, c.child",
)
# SKIP LOCKED leaves out rows that another transaction has locked; the caller finds them by `left_of` and tries again.
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
WORKFLOWS = Statement(
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

CancelVerdict = Literal["ended", "asked", "moving"]


def cancel(
    execution: UUID, reason: str, new_id: NewId, now: Instant, consequences: Consequences
) -> Script[CancelVerdict]:
    """Cancel a workflow under way.

    Return `ended` when it has ended now, `asked` when it ends later, because steps must be stopped, undone or run
    first, and `moving` when it had ended already or has no row.
    """
    if execution not in (yield from workflow_locks.lock([execution])):
        return "moving"
    moves = Deferred()
    batch = WorkflowBatch(moves, new_id, now, consequences)
    yield from batch.load([execution])
    run = batch.runs[execution]
    if run.is_over:
        return "moving"
    if run.is_opening:
        run.end, run.is_over = WorkflowResult(state="cancelled", reason=reason), True
    else:
        going_on = structs.replace(run.workflow, paused=False)  # so that undo steps and final steps can start
        deciding = decide.cancel(run.plan, going_on, run.stored.about, reason, now)
        yield from run.decide(deciding, moves, now)
    yield from settle(batch, {}, new_id, now, consequences)
    return "ended" if batch.finished else "asked"


def settle(
    batch: WorkflowBatch,
    ended_steps: dict[UUID, list[StepEnd]],
    new_id: NewId,
    now: Instant,
    consequences: Consequences,
) -> Script[None]:
    """Decide the consequences of ended steps and write all changes of the workflows in `batch`.

    If workflows end by this, also advance the executions that wait for them.
    """
    yield from batch.settle(ended_steps)
    yield from batch.moves.make()
    consequences.ended_workflows += [as_ended(f) for f in batch.finished]
    yield from advance_waiting(batch.finished, new_id, now, consequences)


class ToStop(Struct, frozen=True):
    """The executions of a workflow that are to be stopped."""

    execution: UUID  # the workflow
    stops: frozenset[str]  # the list of steps in its row when it was read
    reason: str
    children: list[tuple[UUID, UUID]]  # executions of single steps, each with its job
    parcels: list[UUID]  # parcels of foreach steps


def to_stop(execution: UUID) -> Script[ToStop | None]:
    """Return the executions of the steps that a workflow's row lists to be stopped; None when it lists no steps.

    This takes no lock.
    """
    held = (yield from workflow_rows.workflows_of([execution])).get(execution)
    if held is None or not held.stops:
        return None
    steps = (yield from workflow_rows.some_steps(workflow_rows.OPEN_STEPS, [held.place]))[held.place]
    mine = [(row, pin) for row, pin in steps if ALL in held.stops or row.step in held.stops]
    ended = held.stops - {ALL, *(row.step for row, _ in mine)}  # steps that a user ended while their executions run
    if ended:
        mine += (yield from workflow_rows.steps_of([(*held.place, step, False) for step in sorted(ended)])).values()
    fans = {row.step for row, _ in mine if row.total}
    rows = (yield Fetch(FANNED, held.place)) if fans else []
    return ToStop(
        execution=execution,
        stops=held.stops,
        reason=f"its workflow is {held.workflow.state}" if ALL in held.stops else "its step has ended",
        children=[(row.execution, pin.job) for row, pin in mine if row.execution and pin and row.step not in fans],
        parcels=[child for step, child in rows if step in fans],
    )


def cancel_pending(
    shelf: str, parcels: Collection[UUID], reason: str, new_id: NewId, now: Instant, consequences: Consequences
) -> Script[dict[UUID, int]]:
    """Cancel waiting or queued slices of parcels; return the number of cancelled executions by job.

    `shelf` is `waiting` or `queued`. Rows that another transaction has locked are left out, see `PENDING`.
    """
    read = shelves.waiting if shelf == "waiting" else shelves.queued
    rows = yield ForEach(PENDING[shelf], PARCEL, [(parcel,) for parcel in sorted(parcels)])
    slices: list[WaitingSlice | QueuedSlice] = [read(row) for row in rows]
    if not slices:
        return {}
    yield from leave(
        slices, [as_cancelled(item_slice, reason, now) for item_slice in slices], new_id, now, consequences
    )
    counts: dict[UUID, int] = {}
    for item_slice in slices:
        counts[item_slice.job] = counts.get(item_slice.job, 0) + item_slice.hi - item_slice.lo
    return counts


def left_of(parcels: Collection[UUID]) -> Script[list[UUID]]:
    """Return the parcels that still have waiting or queued slices."""
    return [row[0] for row in (yield ForEach(LEFT, PARCEL, [(parcel,) for parcel in sorted(parcels)]))]


def workflows_in(parcels: Collection[UUID]) -> Script[list[UUID]]:
    """Return the workflows under way that are items of parcels: nested workflows of a foreach."""
    rows = yield ForEach(WORKFLOWS, PARCEL, [(parcel,) for parcel in sorted(parcels)])
    return [execution_id(parcel, item) for parcel, lo, hi in rows for item in range(lo, hi)]


def sessions_of(parcels: Collection[UUID]) -> Script[list[UUID]]:
    """Return the sessions that run items of parcels."""
    return sorted({row[0] for row in (yield ForEach(SESSIONS, PARCEL, [(parcel,) for parcel in sorted(parcels)]))})


def ask_session(session: UUID, parcels: Collection[UUID], reason: str, now: Instant) -> Script[int]:
    """Ask a session to stop its running items of parcels; return the number of items.

    The session is locked, so that its items cannot move to another shelf meanwhile.
    """
    yield from lock_sessions([session])
    rows = yield ForEach(RUNNING, PARCEL, [(parcel,) for parcel in sorted(parcels)], (session,))
    return (yield from ask_to_stop(session, rows, reason, now))


def finish_stops(
    execution: UUID, stops: Collection[str], new_id: NewId, now: Instant, consequences: Consequences
) -> Script[None]:
    """Clear the list of steps to stop, when the caller has stopped all executions of the steps in `stops`.

    Steps that wait without an execution, for example for an approval, end here. If the list has grown meanwhile, it is
    not cleared, so the caller has to stop the new ones first.
    """
    if execution not in (yield from workflow_locks.lock([execution])):
        return
    batch = WorkflowBatch(Deferred(), new_id, now, consequences)
    yield from batch.load([execution])
    run = batch.runs[execution]
    if not run.stops <= set(stops):
        return
    run.stops.clear()
    steps = (yield from workflow_rows.some_steps(workflow_rows.OPEN_STEPS, [run.stored.place]))[run.stored.place]
    run.learn(steps)
    waits = [row for row, _ in steps if row.execution is None and (ALL in stops or row.step in stops)]
    yield from settle(batch, {execution: [_given_up(row.step) for row in waits]}, new_id, now, consequences)


def _given_up(step: str) -> StepEnd:
    return StepEnd(step=step, state="cancelled", reason="cancelled")
