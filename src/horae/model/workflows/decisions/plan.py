"""A workflow's graph, compiled once for each version of its job and asked at every decision."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

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
from horae.model.workflows.decisions.joins import CATCHING
from horae.model.workflows.decisions.values import PHASES, UNDO, Call, Phase, Step, Workflow
from horae.model.workflows.waits import Approval, Callback, EventWait, SignalWait, Sleep

NOTHING = b"{}"


class Filled(Struct, frozen=True):
    """Params with expressions: ready as they are, or to be rendered."""

    tree: Any = None
    ready: bytes | None = NOTHING  # JSON, when nothing of it must be computed
    said: bool = False  # whether the definition speaks of params at all


class Node(Struct, frozen=True, kw_only=True):
    """A step with its edges and its compiled expressions."""

    step: Step
    phase: Phase
    upstreams: tuple[str, ...]  # steps of the same phase that must have ended before it
    followers: tuple[str, ...]  # those of which it is an upstream
    catchers: tuple[str, ...]  # of these, the ones that may run because of its failure, or in spite of it
    speaks: frozenset[str]  # of the results of these steps, when it starts
    params: Filled
    when: Expression | None = None
    items: Any = None  # compiled
    condition: Expression | None = None  # of its loop
    branches: tuple[tuple[Expression | None, tuple[str, ...]], ...] = ()
    texts: Mapping[str, Any] = {}  # compiled, of what it waits for


class Undoing(Struct, frozen=True, kw_only=True):
    """How a step is undone."""

    call: Call
    speaks: frozenset[str]
    params: Filled


class Plan(Struct, frozen=True, kw_only=True):
    """A workflow ready for decisions."""

    workflow: Workflow
    nodes: Mapping[str, Node]
    order: Mapping[Phase, tuple[str, ...]]  # the steps of each phase, upstreams first
    leaves: tuple[str, ...]  # steps of the main phase that nothing follows
    undoings: Mapping[str, Undoing]  # by the step that is undone
    output: Any = None  # compiled
    output_speaks: frozenset[str] = frozenset()
    callbacks: tuple[str, ...] = ()  # steps that wait until their URL is called

    def fans(self, step: str) -> bool:
        """Whether a step has an execution for each of several items: a foreach, and its undoing."""
        node = self.nodes.get(step.removesuffix(UNDO))
        return node is not None and node.step.foreach is not None


def plan_of(workflow: Workflow) -> Plan:
    """Compile a workflow that has been checked."""
    nodes: dict[str, Node] = {}
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
        output_speaks=frozenset(spoken(workflow.output, "output", KNOWN)),
        callbacks=tuple(step.name for step in workflow.everything if isinstance(step.wait, Callback)),
    )


def edges(steps: Sequence[Step], phase: Phase) -> dict[str, list[str]]:
    """The upstreams of each step: what it says it comes after, what it speaks of, and the switches that name it."""
    names = {step.name for step in steps}
    upstreams = {step.name: dict.fromkeys(step.after) for step in steps}
    for step in steps:
        for field, value, known in places(step, phase):
            for name in spoken(value, field, known):
                if name in names and name != step.name:
                    upstreams[step.name].setdefault(name)
        for branch in step.switch:
            for name in branch.then:
                upstreams[name].setdefault(step.name)
    return {name: list(found) for name, found in upstreams.items()}


def reverse(upstreams: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The followers of each step."""
    followers: dict[str, list[str]] = {name: [] for name in upstreams}
    for name, before in upstreams.items():
        for upstream in before:
            followers[upstream].append(name)
    return followers


def places(step: Step, phase: Phase) -> Iterator[tuple[str, Any, Names]]:
    """Where a step has expressions that are computed when it starts: the field, what is there, and what it may know."""
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


def names_of_params(step: Step) -> Names:
    """What the params of a step may speak of beside what others do."""
    return IN_FOREACH if step.foreach is not None else IN_LOOP if step.loop is not None else KNOWN


def texts_of(step: Step) -> dict[str, str]:
    """The texts of what a step waits for, by their fields."""
    wait = step.wait
    if isinstance(wait, Sleep):
        return {"sleep.until": wait.until} if wait.until else {}
    if isinstance(wait, EventWait):
        return {"event.name": wait.name, **({"event.filter": wait.filter} if wait.filter else {})}
    if isinstance(wait, SignalWait):
        return {"signal.name": wait.name}
    return {"approval.message": wait.message} if isinstance(wait, Approval) else {}


def spoken(value: Any, field: str, known: Names) -> set[str]:
    """The steps that the expressions of a value speak of."""
    return {name for expression in expressions_in(value, field, known) for name in steps_of(expression, field)}


def _node(
    step: Step, phase: Phase, upstreams: tuple[str, ...], followers: tuple[str, ...], catchers: tuple[str, ...]
) -> Node:
    found = {field: (value, known) for field, value, known in places(step, phase)}
    asked = {name for field, (value, known) in found.items() for name in spoken(value, field, known)}

    def compiled(field: str, make: Callable[[Any, str, Names], Any]) -> Any:
        return make(found[field][0], field, found[field][1]) if field in found else None

    return Node(
        step=step,
        phase=phase,
        upstreams=upstreams,
        followers=followers,
        catchers=catchers,
        speaks=frozenset(asked - {step.name}),
        params=_filled(step.params, *found["params"][1:]) if "params" in found else Filled(),
        when=compiled("when", condition_of),
        items=compiled("foreach.items", compile_tree),
        condition=compiled("while", condition_of) or compiled("until", condition_of),
        branches=tuple(
            (condition_of(branch.when, "when", OF_ERROR) if branch.when else None, branch.then)
            for branch in step.switch
        ),
        texts={field: compiled(field, compile_tree) for field in texts_of(step) if field != "event.filter"},
    )


def names_of_undo(step: Step) -> Names:
    """What the params of an undoing may speak of."""
    return OF_ERROR if step.foreach is None else OF_ERROR | IN_FOREACH


def _undoing(step: Step, call: Call) -> Undoing:
    names, params = names_of_undo(step), {} if call.params is None else call.params
    filled = Filled() if call.params is None else _filled(params, names)
    speaks = spoken(params, "undo.params", names)
    if step.foreach is not None:
        speaks |= spoken(step.foreach.items, "foreach.items", KNOWN)  # each item is undone by itself
    return Undoing(call=call, speaks=frozenset(speaks), params=filled)


def _filled(params: Any, known: Names) -> Filled:
    tree = compile_tree(params, "params", known)
    return Filled(tree, None if callable(tree) else msgspec.json.encode(tree), True)
