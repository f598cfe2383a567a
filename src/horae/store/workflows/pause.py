"""Pausing and resuming a workflow together with the workflows nested in it.

While a workflow is paused, no step starts. Executions of steps that have not begun move from `queued` to `waiting`.
Running steps continue, with their retries. The transaction holds the lock of the root until its end. So a transaction
that ends a step at the same time either comes later and finds the workflow paused, or comes earlier and has started the
next steps, which are then paused, too.
"""

from collections.abc import Collection
from uuid import UUID

from msgspec import structs

from horae.env import Instant
from horae.model.admission.keys import KEYED
from horae.model.base.ids import parcel_of
from horae.model.executions.slice import WaitingSlice
from horae.model.workflows.decisions import decide
from horae.store.admission import holders
from horae.store.base import shelves
from horae.store.base.deferred import Deferred
from horae.store.script import Fetch, ForEach, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.workflows import locks as workflow_locks
from horae.store.workflows import rows as workflow_rows
from horae.store.workflows.advance import WorkflowBatch
from horae.store.workflows.cancel import FANNED, PARCEL, settle
from horae.store.workflows.starts import gate_of, paused
from horae.store.workflows.workflow_run import WorkflowRun

TREE = Statement(
    "workflows_of_tree",
    "SELECT o.execution, o.parent FROM flows f JOIN flows o ON o.root = f.root AND o.state <> 'ended'"
    " WHERE f.parcel = $1 AND f.item = $2",
)
# SKIP LOCKED leaves out slices that a claim is taking at this moment: they count as begun before the pause.
QUEUED = Statement(
    "queued_steps",
    f"SELECT {shelves.names(shelves.QUEUED, 's.')} FROM given JOIN queued s ON s.parcel = given.parcel"
    " WHERE s.attempt = 0 FOR UPDATE OF s SKIP LOCKED",
)
WAITING = Statement(
    "waiting_steps",
    f"SELECT {shelves.names(shelves.WAITING, 's.')} FROM given JOIN waiting s ON s.parcel = given.parcel"
    " WHERE s.attempt = 0 AND s.reason IN ('delay', 'limit', 'sequence', 'rate') FOR UPDATE OF s SKIP LOCKED",
)
AT_GATE = Statement(
    "paused_steps",
    f"SELECT {shelves.names(shelves.WAITING, 's.')}, p.due_at FROM given JOIN waiting s ON s.gate = given.gate"
    " JOIN parcels p ON p.id = s.parcel FOR UPDATE OF s SKIP LOCKED",
)
DUE_AT = len(shelves.WAITING)


def pause(execution: UUID, new_id: NewId, now: Instant, consequences: Consequences) -> Script[bool]:
    """Pause a workflow and the workflows nested in it; return False when it has ended or has not begun."""
    batch = yield from _lock_tree(execution, new_id, now, consequences)
    if batch is None:
        return False
    held: list[WaitingSlice] = []
    for run in batch.runs.values():
        run.workflow = structs.replace(run.workflow, paused=True)
        held += yield from _hold_back(run)
    yield shelves.put_waiting(held)
    yield from settle(batch, {}, new_id, now, consequences)
    keyed = {waiting.parcel for waiting in held if waiting.flags & KEYED}
    if keyed:
        entered = yield from holders.free(keyed, now)
        consequences.queue(entered.queued)
        consequences.wake_by(entered.wake_at)
    return True


def resume(execution: UUID, new_id: NewId, now: Instant, consequences: Consequences) -> Script[bool]:
    """Resume a workflow and the workflows nested in it; start the steps that were held by the pause or by breakpoints.

    Return False when the workflow has ended or has not begun.
    """
    batch = yield from _lock_tree(execution, new_id, now, consequences)
    if batch is None:
        return False
    places = {run.stored.place: run for run in batch.runs.values()}
    for place, steps in (yield from workflow_rows.some_steps(workflow_rows.HELD_STEPS, list(places))).items():
        run = places[place]
        if run.is_opening:
            run.workflow = structs.replace(run.workflow, paused=False)
            continue
        run.learn(steps)
        held = [row for row, _ in steps]
        deciding = decide.resume(run.plan, run.workflow, run.stored.about, held, now)
        yield from run.decide(deciding, batch.moves, now)
    yield from _release(batch.runs, now, consequences)
    yield from settle(batch, {}, new_id, now, consequences)
    return True


def _lock_tree(
    execution: UUID, new_id: NewId, now: Instant, consequences: Consequences
) -> Script[WorkflowBatch | None]:
    """Lock and read a workflow and the nested workflows that have not ended.

    Return None if the workflow itself has ended or has not begun.
    """
    if execution not in (yield from workflow_locks.lock([execution])):
        return None
    batch = WorkflowBatch(Deferred(), new_id, now, consequences)
    yield from batch.load([execution])
    if batch.runs[execution].is_over:
        return None
    rows = yield Fetch(TREE, batch.runs[execution].stored.place)
    yield from batch.load(_nested_in(execution, dict(rows)))
    return batch


def _nested_in(execution: UUID, parents: dict[UUID, UUID | None]) -> list[UUID]:
    """Return the workflows that are nested in `execution`, at any depth. `parents` has the parent of each workflow."""
    found = {execution}
    grows = True
    while grows:
        more = {execution for execution, parent in parents.items() if parent in found} - found
        found |= more
        grows = bool(more)
    return sorted(found - {execution})


def _hold_back(run: WorkflowRun) -> Script[list[WaitingSlice]]:
    """Take executions of steps that have not begun off `queued` and `waiting`, and return them as paused slices.

    The caller puts the paused slices on `waiting`.
    """
    place = run.stored.place
    steps = (yield from workflow_rows.some_steps(workflow_rows.OPEN_STEPS, [place]))[place]
    parcels = {parcel_of(row.execution) for row, _ in steps if row.execution is not None}
    if any(row.total for row, _ in steps):
        fans = {row.step for row, _ in steps if row.total}
        parcels |= {child for step, child in (yield Fetch(FANNED, place)) if step in fans}
    given = [(parcel,) for parcel in sorted(parcels)]
    queued = [shelves.queued(row) for row in (yield ForEach(QUEUED, PARCEL, given))]
    waiting = [shelves.waiting(row) for row in (yield ForEach(WAITING, PARCEL, given))]
    if queued:
        yield shelves.take("queued", queued)
    if waiting:
        yield shelves.take("waiting", waiting)
    gate = gate_of(run.workflow.execution)
    return [paused(unstarted, gate) for unstarted in (*queued, *waiting)]


def _release(workflows: Collection[UUID], now: Instant, consequences: Consequences) -> Script[None]:
    """Let executions that the pause held back wait for their due time instead, which is over for most of them."""
    rows = yield ForEach(AT_GATE, (("gate", "text"),), [(gate_of(execution),) for execution in sorted(workflows)])
    if not rows:
        return
    held = [shelves.waiting(row) for row in rows]
    due = [max(now, row[DUE_AT]) for row in rows]
    yield shelves.take("waiting", held)
    yield shelves.put_waiting(
        [structs.replace(s, reason="delay", gate=None, wake_at=at) for s, at in zip(held, due, strict=True)]
    )
    consequences.wake_by(min(due))
