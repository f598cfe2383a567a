"""Workflows that are due: they are to begin, have steps to stop, ran out of time, or have a step whose wait is over."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct, field, structs

from horae.env import Instant
from horae.model.base.instant import format_instant
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions import decide
from horae.model.workflows.decisions.waits import timed_out
from horae.model.workflows.decisions.workflow import StepEnd, StepRow
from horae.model.workflows.waits import Sleep
from horae.store.base.deferred import Deferred
from horae.store.script import Fetch, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.workflows import locks as workflow_locks
from horae.store.workflows import rows as workflow_rows
from horae.store.workflows import waits as workflow_waits
from horae.store.workflows.advance import EndedSteps, WorkflowBatch
from horae.store.workflows.begin import begin
from horae.store.workflows.cancel import settle
from horae.store.workflows.workflow_run import WorkflowRun

DUE = Statement("workflows_due", "SELECT execution FROM flows WHERE wake_at <= $1 ORDER BY wake_at LIMIT $2")
STEPS_DUE = Statement(
    "workflow_steps_due",
    "SELECT f.execution, s.step FROM flow_steps s JOIN flows f ON f.parcel = s.parcel AND f.item = s.item"
    " WHERE s.wake_at <= $1 ORDER BY s.wake_at LIMIT $2",
)
NEXT = Statement(
    "next_workflow",
    "SELECT (SELECT min(wake_at) FROM flows WHERE wake_at IS NOT NULL),"
    " (SELECT min(wake_at) FROM flow_steps WHERE wake_at IS NOT NULL), (SELECT min(at) FROM flow_news),"
    " (SELECT min(remind_at) FROM flow_waits WHERE remind_at IS NOT NULL)",
)


# All workflows that wait for their children have the same gate, see `begin`: without such a row, none is under way.
UNDER_WAY = Statement("any_workflow", "SELECT 1 FROM waiting WHERE gate = 'children' LIMIT 1")


class DueResult(Struct):
    """The result of `advance_due`."""

    count: int = 0  # due workflows, due steps and workflows with events; at the limit there may be more
    started: Consequences = field(default_factory=Consequences)
    stops: list[UUID] = []  # workflows with executions that are still to be stopped


def advance_due(limit: int, new_id: NewId, now: Instant, only: UUID | None = None) -> Script[DueResult]:
    """Begin workflows that have left the queue, fail workflows that ran out of time, and end waits that are over.

    With `only`, ignore all workflows but this one.
    """
    workflows = [row[0] for row in (yield Fetch(DUE, (now, limit)))]
    steps: dict[UUID, list[str]] = {}
    for execution, step in (yield Fetch(STEPS_DUE, (now, limit))):
        steps.setdefault(execution, []).append(step)
    heard = set((yield from workflow_waits.workflows_with_events(limit)))
    looked = DueResult(count=len(workflows) + len(steps) + len(heard))
    due = sorted(execution for execution in {*workflows, *steps, *heard} if only in (None, execution))
    if not due:
        return looked
    there = yield from workflow_locks.lock(due)
    batch = WorkflowBatch(Deferred(), new_id, now, looked.started)
    yield from batch.load(there)
    ended_steps: EndedSteps = {}
    for execution in due:
        run = batch.runs.get(execution)
        if run is None:
            continue
        ended = [] if run.is_over else (yield from _check_workflow(batch, run, steps.get(execution, ()), now))
        if execution in heard:
            by_events = yield from workflow_waits.ended_by_events(run, batch.moves)
            ended += [one for one in by_events if one.step not in {other.step for other in ended}]
        if ended:
            ended_steps[execution] = ended
        if run.stops:
            looked.stops.append(execution)
    yield from settle(batch, ended_steps, new_id, now, looked.started)
    return looked


def _check_workflow(
    batch: WorkflowBatch, run: WorkflowRun, steps: Sequence[str], now: Instant
) -> Script[list[StepEnd]]:
    """Begin a workflow, or fail it if its time is over; otherwise return the ends of steps whose wait is over."""
    if run.is_opening:
        yield from _begin(batch, run, now)
        return []
    until = run.stored.until
    if until is not None and until <= now and run.workflow.verdict == "success" and run.workflow.phase == "main":
        failing = decide.fail(run.plan, run.workflow, run.stored.about, _timeout_failure(run), "timeout", now)
        yield from run.decide(failing, batch.moves, now)
        return []
    if not steps:
        return []
    place = run.stored.place
    rows = yield from workflow_rows.steps_of([(*place, step, False) for step in sorted(steps)])
    run.learn(rows.values())
    return [_end_of_wait(run, row) for row, _ in rows.values() if row.wake_at is not None and row.wake_at <= now]


def _end_of_wait(run: WorkflowRun, row: StepRow) -> StepEnd:
    wait = run.plan.nodes[row.step].step.wait
    return StepEnd(step=row.step) if wait is None or isinstance(wait, Sleep) else timed_out(row.step, wait)


def _begin(batch: WorkflowBatch, run: WorkflowRun, now: Instant) -> Script[None]:
    """Begin a workflow that has left the queue; pause it if it is a step of a paused workflow."""
    parent = run.stored.parent
    above = (yield from workflow_rows.workflows_of([parent])) if parent is not None else {}
    paused = parent in above and above[parent].workflow.paused
    run.workflow = structs.replace(run.workflow, paused=paused or run.workflow.paused)
    run.is_opening = False
    yield from begin(run, batch.moves, now)


def _timeout_failure(run: WorkflowRun) -> Failure:
    until = format_instant(run.stored.until or 0)
    return Failure(type="TimedOut", message=f"The workflow was not done at {until}.", kind="timeout", permanent=True)


def due(limit: int, now: Instant) -> Script[list[UUID]]:
    """Return the workflows that are due, without a lock."""
    workflows = [row[0] for row in (yield Fetch(DUE, (now, limit)))]
    steps = [row[0] for row in (yield Fetch(STEPS_DUE, (now, limit)))]
    heard = yield from workflow_waits.workflows_with_events(limit)
    return sorted({*workflows, *steps, *heard})


def is_any_under_way() -> Script[bool]:
    """Tell whether any workflow has begun and not ended."""
    return bool((yield Fetch(UNDER_WAY)))


def next_due() -> Script[Instant | None]:
    """Return the earliest instant at which a workflow, a step, an event or a reminder is due; None if there is none."""
    rows = yield Fetch(NEXT)
    return min((at for at in rows[0] if at is not None), default=None)
