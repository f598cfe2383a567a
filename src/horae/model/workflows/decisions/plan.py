"""A workflow's graph, compiled once per version of its job and used by every decision; and the rules of joins."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any, Literal

import msgspec
from msgspec import Struct

from horae.model.expressions.template import Expression, Names, compile_tree
from horae.model.workflows.decisions.expressions import (
    IN_FOREACH,
    IN_LOOP,
    KNOWN,
    OF_ERROR,
    OF_EVENT,
    condition_of,
    expressions_in,
    steps_of,
)
from horae.model.workflows.decisions.values import PHASES, UNDO, Call, JoinRule, Phase, Workflow, WorkflowStep
from horae.model.workflows.decisions.workflow import StepRow
from horae.model.workflows.waits import Approval, Callback, EventWait, SignalWait, Sleep

Verdict = Literal["start", "skip", "wait"]

EARLY: frozenset[JoinRule] = frozenset({"oneSuccess", "oneFailed"})  # rules that do not wait for all upstreams
# Steps with these rules run despite or because of a failed upstream. If such a step runs, it handles that failure, and
# the failure has no further effect.
CATCHING: frozenset[JoinRule] = frozenset({"oneSuccess", "oneFailed", "allFailed", "allDone", "always"})

_RUNS: Mapping[JoinRule, Callable[[StepRow], bool]] = {
    "allSuccess": lambda row: not row.failed and not row.skipped,
    "allDone": lambda row: bool(row.succeeded or row.failed),
    "oneSuccess": lambda row: bool(row.succeeded),
    "oneFailed": lambda row: bool(row.failed),
    "noneFailed": lambda row: not row.failed,
    "noneFailedOneSuccess": lambda row: bool(row.succeeded) and not row.failed,
    "allFailed": lambda row: bool(row.failed) and not row.succeeded and not row.skipped,
    "allSkipped": lambda row: not row.succeeded and not row.failed,
    "always": lambda row: True,
}
NOTHING = b"{}"


def join(rule: JoinRule, row: StepRow) -> Verdict:
    """Apply a step's rule to the upstreams that have ended. No step is skipped before all its upstreams have ended."""
    if row.missing and rule not in EARLY:
        return "wait"
    if _RUNS[rule](row):
        return "start"
    return "wait" if row.missing else "skip"


class CompiledParams(Struct, frozen=True):
    """Params of a definition, compiled. They are constant, or rendered from `tree` at each start."""

    tree: Any = None  # the result of `compile_tree`
    constant: bytes | None = NOTHING  # JSON; None if the params have expressions
    given: bool = False  # whether the definition has params


class PlanNode(Struct, frozen=True, kw_only=True):
    """A step with its edges and its compiled expressions."""

    step: WorkflowStep
    phase: Phase
    upstreams: tuple[str, ...]  # steps of the same phase that must end before it
    followers: tuple[str, ...]  # steps with this one among their upstreams
    catchers: tuple[str, ...]  # the followers that may run because of its failure or despite it
    needed_steps: frozenset[str]  # the steps whose results it needs when it starts
    params: CompiledParams
    when: Expression | None = None
    items: Any = None  # the compiled items of its foreach
    condition: Expression | None = None  # the condition of its loop
    branches: tuple[tuple[Expression | None, tuple[str, ...]], ...] = ()
    texts: Mapping[str, Any] = {}  # the compiled texts of its wait, by field


class UndoStep(Struct, frozen=True, kw_only=True):
    """The undo step of a step."""

    call: Call
    needed_steps: frozenset[str]
    params: CompiledParams


class Plan(Struct, frozen=True, kw_only=True):
    """A workflow compiled for decisions."""

    workflow: Workflow
    nodes: Mapping[str, PlanNode]
    order: Mapping[Phase, tuple[str, ...]]  # the steps of each phase, upstreams first
    leaves: tuple[str, ...]  # steps of the main phase without followers
    undoings: Mapping[str, UndoStep]  # the step that is undone -> its undo step
    output: Any = None  # the compiled output of the workflow
    output_steps: frozenset[str] = frozenset()  # the steps that the output refers to
    callbacks: tuple[str, ...] = ()  # steps that wait for a call of their URL

    def is_foreach(self, step: str) -> bool:
        """Return whether a step has one execution per item: a foreach, or the undo step of one."""
        node = self.nodes.get(step.removesuffix(UNDO))
        return node is not None and node.step.foreach is not None


def plan_of(workflow: Workflow) -> Plan:
    """Compile a workflow that has been checked."""
    nodes: dict[str, PlanNode] = {}
    order: dict[Phase, tuple[str, ...]] = {}
    for phase in PHASES:
        upstreams = edges(workflow.of(phase), phase)
        order[phase] = tuple(TopologicalSorter(upstreams).static_order())
        followers = reverse(upstreams)
        rules = {step.name: step.join for step in workflow.of(phase)}
        for step in workflow.of(phase):
            after = tuple(followers[step.name])
            catchers = tuple(name for name in after if rules[name] in CATCHING)
            nodes[step.name] = _node(step, phase, tuple(upstreams[step.name]), after, catchers)
    return Plan(
        workflow=workflow,
        nodes=nodes,
        order=order,
        leaves=tuple(step.name for step in workflow.steps if not nodes[step.name].followers),
        undoings={step.name: _undoing(step, step.undo) for step in workflow.steps if step.undo is not None},
        output=None if workflow.output is None else compile_tree(workflow.output, "output", KNOWN),
        output_steps=frozenset(referenced_steps(workflow.output, "output", KNOWN)),
        callbacks=tuple(step.name for step in workflow.everything if isinstance(step.wait, Callback)),
    )


def edges(steps: Sequence[WorkflowStep], phase: Phase) -> dict[str, list[str]]:
    """Return the upstreams of each step: those in its `after` and its expressions, and the switches that name it."""
    names = {step.name for step in steps}
    upstreams = {step.name: dict.fromkeys(step.after) for step in steps}
    for step in steps:
        for field, value, known in places(step, phase):
            for name in referenced_steps(value, field, known):
                if name in names and name != step.name:
                    upstreams[step.name].setdefault(name)
        for branch in step.switch:
            for name in branch.then:
                upstreams[name].setdefault(step.name)
    return {name: list(found) for name, found in upstreams.items()}


def reverse(upstreams: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the followers of each step."""
    followers: dict[str, list[str]] = {name: [] for name in upstreams}
    for name, before in upstreams.items():
        for upstream in before:
            followers[upstream].append(name)
    return followers


def places(step: WorkflowStep, phase: Phase) -> Iterator[tuple[str, Any, Names]]:
    """Yield the expressions computed when a step starts: the field, its value, and the names it may use."""
    known = KNOWN if phase == "main" else OF_ERROR
    if step.when:
        yield "when", step.when, known
    if step.params is not None:
        yield "params", step.params, known | names_of_params(step)
    if step.foreach is not None:
        yield "foreach.items", step.foreach.items, known
    if step.loop is not None:
        yield "until" if step.loop.until else "while", step.loop.condition, known | IN_LOOP
    for field, text in texts_of(step).items():
        yield field, text, known | (OF_EVENT if field == "event.filter" else KNOWN)
    for i, branch in enumerate(step.switch):
        if branch.when:
            yield f"switch[{i}].when", branch.when, known


def names_of_params(step: WorkflowStep) -> Names:
    """Return the additional names that the params of a step may use."""
    return IN_FOREACH if step.foreach is not None else IN_LOOP if step.loop is not None else KNOWN


def texts_of(step: WorkflowStep) -> dict[str, str]:
    """Return the texts of a step's wait that may have expressions, by field."""
    wait = step.wait
    if isinstance(wait, Sleep):
        return {"sleep.until": wait.until} if wait.until else {}
    if isinstance(wait, EventWait):
        return {"event.name": wait.name, **({"event.filter": wait.filter} if wait.filter else {})}
    if isinstance(wait, SignalWait):
        return {"signal.name": wait.name}
    return {"approval.message": wait.message} if isinstance(wait, Approval) else {}


def referenced_steps(value: Any, field: str, known: Names) -> set[str]:
    """Return the steps that the expressions of a value refer to."""
    return {name for expression in expressions_in(value, field, known) for name in steps_of(expression, field)}


def _node(
    step: WorkflowStep, phase: Phase, upstreams: tuple[str, ...], followers: tuple[str, ...], catchers: tuple[str, ...]
) -> PlanNode:
    found = {field: (value, known) for field, value, known in places(step, phase)}
    referenced = {name for field, (value, known) in found.items() for name in referenced_steps(value, field, known)}

    def compiled(field: str, make: Callable[[Any, str, Names], Any]) -> Any:
        return make(found[field][0], field, found[field][1]) if field in found else None

    return PlanNode(
        step=step,
        phase=phase,
        upstreams=upstreams,
        followers=followers,
        catchers=catchers,
        needed_steps=frozenset(referenced - {step.name}),
        params=_filled(step.params, *found["params"][1:]) if "params" in found else CompiledParams(),
        when=compiled("when", condition_of),
        items=compiled("foreach.items", compile_tree),
        condition=compiled("while", condition_of) or compiled("until", condition_of),
        branches=tuple(
            (condition_of(branch.when, "when", OF_ERROR) if branch.when else None, branch.then)
            for branch in step.switch
        ),
        texts={field: compiled(field, compile_tree) for field in texts_of(step) if field != "event.filter"},
    )


def names_of_undo(step: WorkflowStep) -> Names:
    """Return the names that the params of an undo step may use."""
    return OF_ERROR if step.foreach is None else OF_ERROR | IN_FOREACH


def _undoing(step: WorkflowStep, call: Call) -> UndoStep:
    names, params = names_of_undo(step), {} if call.params is None else call.params
    filled = CompiledParams() if call.params is None else _filled(params, names)
    needed = referenced_steps(params, "undo.params", names)
    if step.foreach is not None:
        needed |= referenced_steps(step.foreach.items, "foreach.items", KNOWN)  # each item is undone separately
    return UndoStep(call=call, needed_steps=frozenset(needed), params=filled)


def _filled(params: Any, known: Names) -> CompiledParams:
    tree = compile_tree(params, "params", known)
    return CompiledParams(tree, None if callable(tree) else msgspec.json.encode(tree), True)
