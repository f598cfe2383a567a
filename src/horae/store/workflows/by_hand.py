"""Manual input to workflows: signals, answers to approvals, and steps that a user marks as done or skipped."""

from collections.abc import Callable, Sequence
from typing import Literal
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.executions.signal_waits import MOST_KEPT, Signal
from horae.model.workflows.decisions.waits import CALLBACK, approvals_before, may_answer
from horae.model.workflows.decisions.workflow import FINAL, StepEnd
from horae.model.workflows.waits import Approval
from horae.store.base.deferred import Deferred
from horae.store.executions.durable.awaits import COUNT, SENT, SIGNALS
from horae.store.executions.durable.signals import SignalResult
from horae.store.script import Fetch, Insert, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.workflows import locks as workflow_locks
from horae.store.workflows import rows as workflow_rows
from horae.store.workflows import waits as workflow_waits
from horae.store.workflows.advance import WorkflowBatch
from horae.store.workflows.cancel import settle
from horae.store.workflows.workflow_run import WorkflowRun

Verdict = Literal["done", "ended", "unknown", "final", "idle", "early", "nothing", "several", "forbidden"]


class ManualResult(Struct, frozen=True):
    """The result of a manual decision.

    - `done`: it was recorded.
    - `unknown`, `ended`: the execution is not a workflow that has begun, or it has ended.
    - `several`: more than one step waits for an approval, and none was named.
    - `final`, `idle`: the step has ended, or waits for no approval.
    - `early`: the step has no row yet, because the steps before it have not ended.
    - `nothing`: the graph has no such step.
    - `forbidden`: the user's role may not answer.
    """

    verdict: Verdict
    steps: Sequence[str] = ()  # the step, if it is known; for `several` the candidates, for `forbidden` the roles


def send(
    execution: UUID, signal: Signal, new_id: NewId, now: Instant, consequences: Consequences
) -> Script[SignalResult | None]:
    """Deliver a signal to the step of a workflow that waits for it, or store it until a step does.

    Signals of users are stored up to a bound, callbacks always: each of their steps has only one.
    Return None when the execution is not a workflow that has begun. A signal that is sent again, with the same id, is
    not delivered again.
    """
    batch = yield from _board(execution, new_id, now, consequences)
    if batch is None:
        return None
    run = batch.runs[execution]
    if run.is_over:
        return SignalResult("final")
    place = run.stored.place
    known = yield Fetch(SENT, (*place, signal.id))
    if known:
        return SignalResult("kept" if known[0][0] is None else "delivered")
    waits = yield from workflow_waits.waits_of(place)
    step = next((s for s, kind, name, _ in waits if kind in ("signal", "callback") and name == signal.name), None)
    ((total, gone),) = yield Fetch(COUNT, place)
    if step is None and total - gone >= MOST_KEPT and not signal.name.startswith(CALLBACK):
        return SignalResult("full")
    yield Insert("signals", SIGNALS, [(*place, signal.id, signal.name, signal.payload, total, step, now)])
    if step is None:
        return SignalResult("kept")
    yield from settle(batch, {execution: [StepEnd(step=step, result=signal.payload)]}, new_id, now, consequences)
    return SignalResult("delivered")


def answer(
    execution: UUID, step: str | None, role: str, make: Callable[[str], StepEnd], new_id: NewId, now: Instant,
    consequences: Consequences,
) -> Script[ManualResult]:  # fmt: skip
    """Approve or reject a step that waits for an approval; without `step`, the only step that waits for one.

    `make` receives the name of the step and returns its end.
    """
    batch = yield from _board(execution, new_id, now, consequences)
    if batch is None or batch.runs[execution].is_over:
        return ManualResult("ended" if batch is not None else "unknown")
    waits = yield from workflow_waits.waits_of(batch.runs[execution].stored.place)
    approvals = {name: wait for name, _, _, wait in waits if isinstance(wait, Approval)}
    chosen = list(approvals) if step is None else [step] if step in approvals else []
    if len(chosen) > 1:
        return ManualResult("several", sorted(approvals))
    if not chosen:
        return (yield from _not_asked(batch.runs[execution], step))
    (name,) = chosen
    if not may_answer(approvals[name], role):
        return ManualResult("forbidden", approvals[name].roles)
    yield from settle(batch, {execution: [make(name)]}, new_id, now, consequences)
    return ManualResult("done", [name])


def _not_asked(run: WorkflowRun, step: str | None) -> Script[ManualResult]:
    """Return the reason why a step cannot be approved or rejected; without `step`, that no step waits."""
    if step is None:
        return ManualResult("idle")
    rows = yield from workflow_rows.steps_of([(*run.stored.place, step, False)])
    if not rows:
        return ManualResult("idle" if step in run.plan.nodes else "nothing", [step])
    return ManualResult("final" if all(row.is_final for row, _ in rows.values()) else "idle", [step])


def decide(
    execution: UUID, ended: StepEnd, role: str, new_id: NewId, now: Instant, consequences: Consequences
) -> Script[ManualResult]:
    """Mark a step that has not ended as done or skipped, and cancel its execution.

    If the step is an open approval, or comes after one, the role must be allowed to answer this approval.
    """
    batch = yield from _board(execution, new_id, now, consequences)
    if batch is None or batch.runs[execution].is_over:
        return ManualResult("ended" if batch is not None else "unknown")
    run = batch.runs[execution]
    rows = yield from workflow_rows.steps_of([(*run.stored.place, ended.step, False)])
    if not rows:
        return ManualResult("early" if ended.step in run.plan.nodes else "nothing", [ended.step])
    run.learn(rows.values())
    if run.rows[ended.step].state in FINAL:
        return ManualResult("final", [ended.step])
    barred = yield from _barred(run, ended.step, role)
    if barred:
        return ManualResult("forbidden", barred)
    yield from settle(batch, {execution: [ended]}, new_id, now, consequences)
    return ManualResult("done", [ended.step])


def _barred(run: WorkflowRun, step: str, role: str) -> Script[Sequence[str]]:
    """Find an open approval, at the step or before it, that this role may not answer.

    Return the roles that may answer it; empty if there is no such approval.
    """
    asked = {name: wait for name, wait in approvals_before(run.plan, step).items() if not may_answer(wait, role)}
    if not asked:
        return ()
    rows = yield from workflow_rows.steps_of([(*run.stored.place, name, False) for name in sorted(asked)])
    ended = {row.step for row, _ in rows.values() if row.is_final}
    return next((wait.roles for name, wait in sorted(asked.items()) if name not in ended), ())


def _board(execution: UUID, new_id: NewId, now: Instant, consequences: Consequences) -> Script[WorkflowBatch | None]:
    """Lock and read a workflow; return None if the execution is not a workflow that has begun."""
    if execution not in (yield from workflow_locks.lock([execution])):
        return None
    batch = WorkflowBatch(Deferred(), new_id, now, consequences)
    yield from batch.load([execution])
    return batch


OPEN = Statement(
    "open_approvals",
    "SELECT w.at, w.parcel, w.item, w.step, w.wait, f.execution, j.id, j.name FROM flow_waits w"
    " JOIN flows f ON f.parcel = w.parcel AND f.item = w.item JOIN jobs j ON j.id = f.job"
    " WHERE w.namespace = $1 AND w.kind = 'approval' AND (w.at, w.parcel, w.item, w.step) > ($2, $3, $4, $5)"
    " ORDER BY w.at, w.parcel, w.item, w.step LIMIT $6",
)
Place = tuple[Instant, UUID, int, str]


class PendingApproval(Struct, frozen=True):
    """A step that waits for an approval."""

    place: Place  # the beginning of its wait, the parcel and item of its workflow, and the step
    execution: UUID  # the workflow
    job: UUID
    job_name: str
    approval: Approval

    @property
    def at(self) -> Instant:
        return self.place[0]

    @property
    def step(self) -> str:
        return self.place[3]


def pending_approvals(namespace: int, after: Place, limit: int) -> Script[list[PendingApproval]]:
    """Return a page of steps that wait for an approval, oldest first, after the place `after`."""
    rows = yield Fetch(OPEN, (namespace, *after, limit))
    return [
        PendingApproval(
            (row[0], row[1], row[2], row[3]), row[5], row[6], row[7], msgspec.json.decode(row[4], type=Approval)
        )
        for row in rows
    ]
