"""Decisions about a workflow: which steps start, which are skipped, and how the workflow ends.

Each function here is a pure decision, written as a generator that asks for the rows it needs:

    decision = after(plan, flow, about, [ended], now)
    ask = next(decision)
    while True:
        try:
            ask = decision.send(rows_of(ask))
        except StopIteration as made:
            return made.value

A decision that needs no row is complete at once: `next` raises StopIteration. The caller holds the flow's lock from
before it reads `flow` until the decision is written. The end of a step costs work per edge of that step and of the
steps skipped because of it; a start costs work per step that its expressions refer to.
"""

from collections.abc import Mapping, Sequence

from horae.env import Instant
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions.flow import Deciding, Decisions, Flow, FlowContext, StepEnd, StepRow
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.round import Round

_NOTHING_COPIED: Mapping[str, StepRow] = {}


def begin(
    plan: Plan, flow: Flow, context: FlowContext, now: Instant, copied: Mapping[str, StepRow] = _NOTHING_COPIED
) -> Deciding[Decisions]:
    """Make the first decision: create all rows of the main phase and start the steps without upstreams.

    `copied` are rows of another execution that a rerun reuses: steps that have ended and do not run again.
    """
    current = Round(plan, flow, context, now)
    yield from current.enter("main", copied)
    yield from current.settle()
    return current.decisions()


def after(
    plan: Plan, flow: Flow, context: FlowContext, ended_steps: Sequence[StepEnd], now: Instant
) -> Deciding[Decisions]:
    """Decide what follows from ended children and ended waits; several of one transaction are decided together."""
    current = Round(plan, flow, context, now)
    yield from current.process(ended_steps)
    yield from current.settle()
    return current.decisions()


def resume(plan: Plan, flow: Flow, context: FlowContext, held: Sequence[StepRow], now: Instant) -> Deciding[Decisions]:
    """Continue after a pause or a breakpoint: start everything in `held`. Pausing itself only sets a mark."""
    current = Round(plan, flow, context, now)
    yield from current.resume(held)
    yield from current.settle()
    return current.decisions()


def cancel(plan: Plan, flow: Flow, context: FlowContext, reason: str, now: Instant) -> Deciding[Decisions]:
    """Cancel the workflow: start nothing more, stop open steps, undo completed ones.

    A workflow that is already undoing its steps continues to do so, even if it was paused.
    """
    current = Round(plan, flow, context, now)
    current.resume_undoing()
    current.give_up("cancelled", None, reason, stop=True)
    yield from current.settle()
    return current.decisions()


def fail(
    plan: Plan, flow: Flow, context: FlowContext, failure: Failure, reason: str, now: Instant
) -> Deciding[Decisions]:
    """Fail the workflow as a whole, for example on a timeout, as if a step had failed under `onError: fail`."""
    current = Round(plan, flow, context, now)
    current.give_up("failed", failure, reason, stop=True)
    yield from current.settle()
    return current.decisions()
