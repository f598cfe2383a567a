"""Which steps start, which do not, and how a workflow ends.

Every function here is a pure decision that asks for the rows it needs, as

    decision = after(plan, flow, about, [ended], now)
    ask = next(decision)
    while True:
        try:
            ask = decision.send(rows_of(ask))
        except StopIteration as made:
            return made.value

A decision that needs no row is made at once: `next` raises StopIteration. The caller holds the flow's lock from before
it read `flow` until it has written what was decided. An end costs the edges of the step that ended, and of those that
are skipped because of it; a start, the steps that its expressions speak of.
"""

from collections.abc import Mapping, Sequence

from horae.env import Instant
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions.flow import About, Deciding, Decisions, Ended, Flow, StepRow
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.round import Round

_NOTHING_COPIED: Mapping[str, StepRow] = {}


def begin(
    plan: Plan, flow: Flow, about: About, now: Instant, copied: Mapping[str, StepRow] = _NOTHING_COPIED
) -> Deciding[Decisions]:
    """The first decision: all rows of the main phase, and those of its steps that depend on nothing start.

    `copied` are rows of another execution that a rerun takes over: steps that have ended and are not run again.
    """
    round = Round(plan, flow, about, now)
    yield from round.enter("main", copied)
    yield from round.settle()
    return round.decisions()


def after(plan: Plan, flow: Flow, about: About, news: Sequence[Ended], now: Instant) -> Deciding[Decisions]:
    """What follows from ends of children and of waits; several of one transaction are decided together."""
    round = Round(plan, flow, about, now)
    yield from round.hear(news)
    yield from round.settle()
    return round.decisions()


def resume(plan: Plan, flow: Flow, about: About, held: Sequence[StepRow], now: Instant) -> Deciding[Decisions]:
    """Go on after a pause or a breakpoint: all that was `held` starts. Pausing is a mark and no decision."""
    round = Round(plan, flow, about, now)
    yield from round.go_on(held)
    yield from round.settle()
    return round.decisions()


def cancel(plan: Plan, flow: Flow, about: About, reason: str, now: Instant) -> Deciding[Decisions]:
    """Somebody cancels the workflow: nothing more of it begins, what is open is stopped, what was done is undone.

    A workflow that is undoing what it did goes on with that, also if it was paused.
    """
    round = Round(plan, flow, about, now)
    round.go_on_undoing()
    round.give_up("cancelled", None, reason, stop=True)
    yield from round.settle()
    return round.decisions()


def fail(plan: Plan, flow: Flow, about: About, failure: Failure, reason: str, now: Instant) -> Deciding[Decisions]:
    """The workflow as a whole fails, as when its time is over: as if a step had failed under `onError: fail`."""
    round = Round(plan, flow, about, now)
    round.give_up("failed", failure, reason, stop=True)
    yield from round.settle()
    return round.decisions()
