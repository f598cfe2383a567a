"""Checks that refuse an invalid workflow before it runs; each error names the step and the remedy."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from horae.errors import BadInput
from horae.model.base.instant import parse_instant
from horae.model.expressions.template import Expression, Names
from horae.model.workflows.decisions.expressions import (
    CONDITION,
    KNOWN,
    condition_of,
    constant_of,
    expressions_in,
    steps_of,
    whole_expression,
)
from horae.model.workflows.decisions.kinds import refuse_kind, refuse_parts
from horae.model.workflows.decisions.plan import edges, names_of_undo, places
from horae.model.workflows.decisions.reach import unreachable
from horae.model.workflows.decisions.values import MOST_STEPS, PHASES, Phase, Workflow, WorkflowStep
from horae.model.workflows.waits import Sleep

_FIELDS: Mapping[Phase, str] = {
    "main": "steps",
    "onSuccess": "onSuccess",
    "onFailure": "onFailure",
    "finally": "finally",
}
_CONDITIONS = ("when", "while", "until", "event.filter")
_NAMES = (
    "`item` and `index` exist in the params of a foreach and of its undo, `index` in those of a loop, `error` in"
    ' handlers and undo; write a step whose name has a dash in quotes: steps["my-step"].'
)
_ITEMS = 'Give a list, or an expression for one: "${steps.extract.result.parts}".'


def check_graph(workflow: Workflow) -> None:
    """Refuse a graph that could never run. Raises BadInput."""
    _check_names(workflow)
    main = {step.name for step in workflow.steps}
    for phase in PHASES:
        steps = workflow.of(phase)
        for i, step in enumerate(steps):
            with _naming_step(step.name, f"workflow.{_FIELDS[phase]}[{i}]"):
                own = {other.name for other in steps}
                _check_step(step, phase, own, main)
        upstreams = edges(steps, phase)
        _refuse_cycles(upstreams, f"workflow.{_FIELDS[phase]}")
        _refuse_unreachable(steps, upstreams, f"workflow.{_FIELDS[phase]}")
    if workflow.output is not None:
        for expression in expressions_in(workflow.output, "workflow.output", KNOWN):
            _check_references(expression, "workflow.output", main, "The output")


def with_step_name(name: str, detail: str) -> str:
    """Return an error text with the name of its step; a step of a nested workflow is named by its path."""
    below = detail.removeprefix('Step "')
    return f'Step "{name}/{below}' if below != detail else f'Step "{name}": {detail}'


@contextmanager
def _naming_step(name: str, place: str) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        error.fields["field"] = f"{place}.{error.fields.get('field', '')}".rstrip(".")
        error.fields.setdefault("step", name)
        error.detail = with_step_name(name, error.detail)
        if "expressions here can use" in error.detail:
            error.remedy = _NAMES
        raise


def _check_names(workflow: Workflow) -> None:
    taken: set[str] = set()
    for phase in PHASES:
        for i, step in enumerate(workflow.of(phase)):
            if step.name in taken:
                field = f"workflow.{_FIELDS[phase]}[{i}].name"
                raise BadInput(f'Two steps are named "{step.name}".', "Rename one of them.", field=field)
            taken.add(step.name)
    if len(taken) > MOST_STEPS:
        detail = f"The workflow has {len(taken)} steps."
        remedy = f"At most {MOST_STEPS} are allowed: move some into a nested workflow."
        raise BadInput(detail, remedy, field="workflow.steps")


def _check_step(step: WorkflowStep, phase: Phase, own: Collection[str], main: Collection[str]) -> None:
    if step.name in step.after:
        raise BadInput("It comes after itself.", "Remove it from the list.", field="after")
    for name, field, what in _named(step):
        if name not in own:
            raise _unknown(name, own, main, field, what)
    for field, value, names in places(step, phase):
        for expression in _expressions(field, value, names):
            _check_references(expression, field, {*own, *main}, "It", step)
    if step.undo is not None:
        if phase != "main":
            raise BadInput("Only steps of the main phase can be undone.", "Remove its undo.", field="undo")
        for expression in expressions_in(step.undo.params, "undo.params", names_of_undo(step)):
            _check_references(expression, "undo.params", main, "Its undo")
    if isinstance(step.wait, Sleep) and step.wait.until and "${" not in step.wait.until:
        parse_instant(step.wait.until, field="sleep.until")


def _named(step: WorkflowStep) -> Iterator[tuple[str, str, str]]:
    """Yield the steps that a step names in `after` and `switch`: the name, the field, and the relation in words."""
    for i, name in enumerate(step.after):
        yield name, f"after[{i}]", "It comes after"
    for i, branch in enumerate(step.switch):
        for j, name in enumerate(branch.then):
            yield name, f"switch[{i}].{'then' if branch.when else 'else'}[{j}]", "It chooses"


def _expressions(field: str, value: Any, known: Names) -> Sequence[Expression]:
    """Parse the expressions of a field; some fields must consist of exactly one expression."""
    if field in _CONDITIONS or field.endswith("].when"):
        condition = condition_of(value, field, known)
        refuse_kind(condition, field, ("boolean",), CONDITION)
        return [condition]
    if field == "foreach.items" and isinstance(value, str):
        return [_check_items(whole_expression(value, field, known, _ITEMS), field)]
    return list(expressions_in(value, field, known))


def _check_items(expression: Expression, field: str) -> Expression:
    """Refuse a constant that is not a list."""
    if not expression.variables:
        value = constant_of(expression, field)
        if not isinstance(value, list):
            raise BadInput(f"foreach.items is always {value!r:.60}, which is not a list.", _ITEMS, field=field)
    refuse_kind(expression, field, ("array",), _ITEMS)
    return expression


def _check_references(
    expression: Expression, field: str, known: Collection[str], who: str, step: WorkflowStep | None = None
) -> None:
    refuse_parts(expression, field)
    for name in sorted(steps_of(expression, field)):
        if name not in known:
            raise _unknown(name, known, (), field, f"{who} refers to", expression)
        if step is not None and name == step.name and step.loop is None:
            remedy = "Only a loop can refer to its own last run: add `until` or `while`."
            raise BadInput(f"${{{expression.source}}} refers to the step itself.", remedy, field=field)


def _unknown(
    name: str, own: Collection[str], main: Collection[str], field: str, what: str, expression: Expression | None = None
) -> BadInput:
    """Return the error for an unknown step, with the nearest known name or the reason why it cannot be used."""
    if name in main:
        detail = f'{what} "{name}", which is a step of the main phase.'
        return BadInput(detail, "All steps of the main phase end before this step: remove the name.", field=field)
    near = get_close_matches(name, list(own), n=1, cutoff=0.6)
    dashed = [other for other in own if expression is not None and "-" in other and other.split("-")[0] == name]
    if dashed:
        remedy = f'Write a name with a dash in quotes: steps["{dashed[0]}"].'
    else:
        remedy = f'Did you mean "{near[0]}"?' if near else f"The steps are: {', '.join(sorted(own)[:20]) or 'none'}."
    shown = "" if expression is None else f" in ${{{expression.source}}}"
    return BadInput(f'{what} the step "{name}"{shown}, which does not exist.', remedy, field=field)


def _refuse_cycles(upstreams: Mapping[str, Sequence[str]], field: str) -> None:
    """Refuse cycles and name the path from a step back to itself."""
    done: set[str] = set()
    for start in upstreams:
        path: list[str] = []
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(upstreams[start]))] if start not in done else []
        path += [start] if stack else []
        while stack:
            name, following = stack[-1]
            upstream = next(following, None)
            if upstream is None:
                done.add(name)
                stack.pop()
                path.pop()
            elif upstream in path:
                cycle = [*path[path.index(upstream) :], upstream][::-1]
                path_text = " -> ".join(cycle)
                raise BadInput(
                    f"These steps wait for each other in a circle: {path_text}.",
                    "Remove one of them from the `after` of another, or from its expressions.",
                    field=field,
                    path=cycle,
                )
            elif upstream not in done:
                path.append(upstream)
                stack.append((upstream, iter(upstreams[upstream])))


def _refuse_unreachable(steps: Sequence[WorkflowStep], upstreams: Mapping[str, Sequence[str]], field: str) -> None:
    """Refuse steps that can never start, whatever happens."""
    found = unreachable(steps, upstreams)
    for i, step in enumerate(steps):
        if step.name in found:
            with _naming_step(step.name, f"{field}[{i}]"):
                raise BadInput(
                    f"It can never run: {found[step.name]}.", "Change the condition, or remove the step.", field=""
                )
