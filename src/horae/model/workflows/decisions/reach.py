"""The check for steps that can never run, given the possible outcomes of their upstreams."""

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from horae.model.workflows.decisions.expressions import OF_ERROR, condition_of
from horae.model.workflows.decisions.values import JoinRule, WorkflowStep

SUCCESS, FAILED, SKIPPED = "success", "failed", "skipped"
Outcomes = frozenset[str]  # the possible outcomes of a step

# By its join rule, a step can start only if every upstream can have an outcome from _ALL, and at least one upstream can
# have an outcome from _ONE. A rule without an entry sets no such condition.
_ALL: Mapping[JoinRule, Outcomes] = {
    "allSuccess": frozenset({SUCCESS}),
    "allDone": frozenset({SUCCESS, FAILED, SKIPPED}),
    "noneFailed": frozenset({SUCCESS, SKIPPED}),
    "noneFailedOneSuccess": frozenset({SUCCESS, SKIPPED}),
    "allFailed": frozenset({FAILED}),
    "allSkipped": frozenset({SKIPPED}),
}
_ONE: Mapping[JoinRule, Outcomes] = {
    "allDone": frozenset({SUCCESS, FAILED}),
    "oneSuccess": frozenset({SUCCESS}),
    "oneFailed": frozenset({FAILED}),
    "noneFailedOneSuccess": frozenset({SUCCESS}),
}


def unreachable(steps: Sequence[WorkflowStep], upstreams: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the reason for each step that can never run. The graph must have no cycles."""
    by_name = {step.name: step for step in steps}
    fates: dict[str, Outcomes] = {}
    found: dict[str, str] = {}
    for name in TopologicalSorter(upstreams).static_order():
        step = by_name[name]
        before = [_seen_by(name, by_name[up], fates[up]) for up in upstreams[name]]
        why = _why_not(step, before)
        if why:
            found[name] = why
            fates[name] = frozenset({SKIPPED})
        else:
            fates[name] = _outcomes(step, before)
    return found


def _why_not(step: WorkflowStep, before: Sequence[Outcomes]) -> str:
    if step.when and _always(step.when) is False:
        return "its condition never holds"
    if not before:
        return "" if step.join != "oneFailed" and step.join != "allFailed" else f"{step.join} needs steps before it"
    return "" if _can_start(step.join, before) else f"no outcome of the steps before it satisfies {step.join}"


def _can_start(rule: JoinRule, before: Sequence[Outcomes]) -> bool:
    every, one = _ALL.get(rule), _ONE.get(rule)
    if every is not None and not all(fates & every for fates in before):
        return False
    return one is None or any(fates & one for fates in before)


def _outcomes(step: WorkflowStep, before: Sequence[Outcomes]) -> Outcomes:
    """Return the possible outcomes of a step. It may be skipped by its condition, its join rule, or its wait."""
    fates = {SUCCESS} if step.ignore_failure else {SUCCESS, FAILED}
    late = getattr(step.wait, "on_timeout", "") == "skip"
    if late or (step.when and _always(step.when) is None) or _may_be_skipped(step.join, before):
        fates.add(SKIPPED)
    return frozenset(fates)


def _may_be_skipped(rule: JoinRule, before: Sequence[Outcomes]) -> bool:
    """Return whether some outcome of the upstreams does not match the join rule."""
    if not before or rule == "always":
        return False
    every, one = _ALL.get(rule), _ONE.get(rule)
    if every is not None and any(fates - every for fates in before):
        return True
    return one is not None and all(fates - one for fates in before)


def _seen_by(follower: str, step: WorkflowStep, fates: Outcomes) -> Outcomes:
    """Return the possible outcomes of a step as one follower sees them: a switch skips followers it does not choose."""
    if not step.switch or not any(follower in branch.then for branch in step.switch):
        return fates
    taken: set[str] = set()
    for branch in step.switch:
        certain = _always(branch.when) if branch.when else True
        if certain is not False:
            taken.add(SUCCESS if follower in branch.then else SKIPPED)
        if certain:
            break
    else:
        taken.add(SKIPPED)
    return frozenset((fates - {SUCCESS}) | taken)


def _always(condition: str) -> bool | None:
    """Return the constant value of a condition, or None if it is not constant."""
    expression = condition_of(condition, "when", OF_ERROR)
    return None if expression.variables else bool(expression.value({}))
