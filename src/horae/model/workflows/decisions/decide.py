"""Decisions about a workflow: which steps start, which are skipped, and how the workflow ends.

Each function is a pure decision, written as a generator that yields requests for the rows it needs:

    decision = after(plan, workflow, context, [ended], now)
    try:
        request = next(decision)
        while True:
            request = decision.send(rows_for(request))
    except StopIteration as stop:
        return stop.value

The caller locks the workflow before it reads it, and keeps the lock until the decision is written. The work for the end
of a step grows with the number of its edges and of the edges of the steps skipped because of it; the work for a start,
with the number of steps that its expressions refer to.
"""

from collections.abc import Mapping, Sequence

from horae.env import Instant
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.round import Round
from horae.model.workflows.decisions.workflow import (
    Deciding,
    Decisions,
    StepEnd,
    StepRow,
    WorkflowContext,
    WorkflowExecution,
)

_NOTHING_COPIED: Mapping[str, StepRow] = {}


def begin(
    plan: Plan,
    workflow: WorkflowExecution,
    context: WorkflowContext,
    now: Instant,
    copied: Mapping[str, StepRow] = _NOTHING_COPIED,
) -> Deciding[Decisions]:
    """Make the first decision: create all rows of the main phase and start the steps without upstreams.

    `copied` are rows of another execution that a rerun reuses: steps that have ended and do not run again.
    """
    current = Round(plan, workflow, context, now)
    yield from current.enter("main", copied)
    yield from current.settle()
    return current.decisions()


def after(
    plan: Plan, workflow: WorkflowExecution, context: WorkflowContext, ended_steps: Sequence[StepEnd], now: Instant
) -> Deciding[Decisions]:
    """Decide the consequences of ended children and ended waits: of all that end in one transaction, together."""
    current = Round(plan, workflow, context, now)
    yield from current.process(ended_steps)
    yield from current.settle()
    return current.decisions()


def resume(
    plan: Plan, workflow: WorkflowExecution, context: WorkflowContext, held: Sequence[StepRow], now: Instant
) -> Deciding[Decisions]:
    """Continue after a pause or a breakpoint: start the steps in `held`."""
    current = Round(plan, workflow, context, now)
    yield from current.resume(held)
    yield from current.settle()
    return current.decisions()


def cancel(
    plan: Plan, workflow: WorkflowExecution, context: WorkflowContext, reason: str, now: Instant
) -> Deciding[Decisions]:
    """Cancel the workflow: start nothing more, stop open steps, undo completed ones.

    A workflow that is already undoing its steps continues to do so, even if it was paused.
    """
    current = Round(plan, workflow, context, now)
    current.resume_undoing()
    current.give_up("cancelled", None, reason, stop=True)
    yield from current.settle()
    return current.decisions()


def fail(
    plan: Plan, workflow: WorkflowExecution, context: WorkflowContext, failure: Failure, reason: str, now: Instant
) -> Deciding[Decisions]:
    """Fail the workflow as a whole, for example after a timeout, as if a step had failed with `onError: fail`."""
    current = Round(plan, workflow, context, now)
    current.give_up("failed", failure, reason, stop=True)
    yield from current.settle()
    return current.decisions()
