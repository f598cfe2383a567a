"""`workflow`: what a job of steps runs, as a user writes it and as it is stored."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from horae.errors import BadInput
from horae.model.definitions.job import JOB
from horae.model.fields.table import Table
from horae.model.fields.values import an_object
from horae.model.workflows.decisions.check import check_graph
from horae.model.workflows.decisions.naming import calls_of
from horae.model.workflows.decisions.values import STEPS, UNDOING, Call, Workflow
from horae.model.workflows.reading.steps import STEP, TASKS, is_short, of_step, read_steps, render_step

WORKFLOW = Table(Workflow, "A workflow")
_STEPS = tuple(row for row in WORKFLOW.rows if row.kind is STEPS)
# Where a definition, or a part of one, holds others.
INSIDE = tuple(
    dict.fromkeys(
        row.name for row in (*WORKFLOW.rows, *STEP.rows) if row.kind in (STEPS, UNDOING, JOB["workflow"].kind)
    )
)
# What a job cannot have when steps do its work: each says something about the worker that runs it, or about tries.
NOT_OF_WORKFLOWS = {row.name: row.field.no_workflow for row in JOB.rows if row.field.no_workflow}
_ACCEPTED = 'Write {"steps": [{"name": "extract", "job": "extract-orders"}, {"name": "load", "job": "load-orders"}]}.'


def parse_workflow(value: Any) -> Workflow:
    """Read a workflow; every mistake names its step."""
    given = {"steps": value} if isinstance(value, list) else an_object(value, "workflow", _ACCEPTED)
    given = {name: part for name, part in given.items() if part is not None}
    WORKFLOW.refuse_unknown(given, "workflow")
    steps: dict[str, Any] = {
        row.attribute: read_steps(given.get(row.name, []), f"workflow.{row.name}") for row in _STEPS
    }
    if not steps["steps"]:
        raise BadInput("A workflow needs a step.", _ACCEPTED, field="workflow.steps")
    workflow = Workflow(**steps, **WORKFLOW.read(given, "workflow."))
    check_graph(workflow)
    return workflow


def with_timeout(given: dict[str, Any]) -> dict[str, Any]:
    """The same with a workflow's `timeout` where it is kept, beside it; what says nothing of a workflow is refused."""
    workflow = given.get("workflow")
    if workflow is None:
        return given
    for field, remedy in NOT_OF_WORKFLOWS.items():
        if given.get(field) and (field, given[field]) != ("slots", 1):
            raise BadInput(f"{field} says nothing of a workflow.", remedy, field=field)
    if not isinstance(workflow, dict) or workflow.get("timeout") is None:
        return given
    if given.get("timeout") not in (None, workflow["timeout"]):
        detail = f"timeout is {given['timeout']} and workflow.timeout is {workflow['timeout']}."
        raise BadInput(detail, "They are the same: give one of them.", field="workflow.timeout")
    rest = {name: part for name, part in workflow.items() if name != "timeout"}
    return {**given, "timeout": workflow["timeout"], "workflow": rest}


def check_owned(workflow: Workflow, read: Callable[[dict[str, Any]], object]) -> None:
    """Have `read` refuse what steps say wrongly of jobs of their own; it is given definitions without a name."""
    places = {step.name: place for place, step in placed(workflow)}
    for name, call in calls_of(workflow):
        if call.own:
            step, _, undoing = name.partition(":")
            with of_step(step, f"{places[step]}.undo" if undoing else places[step]):
                _check_own(call, read)


def _check_own(call: Call, read: Callable[[dict[str, Any]], object]) -> None:
    """What a step says instead of the job that it names is read beside something that runs: what, is the job's word."""
    try:
        with inside(call):
            read(call.own if call.inline else {"command": "true", **call.own})
    except BadInput as error:
        field = str(error.fields.get("field", ""))
        if field.partition(".")[0].partition("[")[0] in TASKS and "speaks of 'steps'" in error.detail:
            error.remedy = 'What a step runs knows its params: write "params": {"rows": "${steps.NAME.result}"}.'
        raise


@contextmanager
def inside(call: Call) -> Iterator[None]:
    """What is wrong with steps inside of a step is told of the field in which they were written."""
    try:
        yield
    except BadInput as error:
        if is_short(call.own):
            error.fields["field"] = str(error.fields.get("field", "")).removeprefix("workflow.")
        raise


def placed(workflow: Workflow) -> list[tuple[str, Any]]:
    """Each step with its place in the definition."""
    return [
        (f"workflow.{row.name}[{i}]", step) for row in _STEPS for i, step in enumerate(getattr(workflow, row.attribute))
    ]


def render_workflow(workflow: Workflow, names: Mapping[str, str]) -> dict[str, Any]:
    """A workflow in the API's spelling; `names` turns ids of jobs into the names people know."""
    said = [(row, steps) for row in _STEPS if (steps := getattr(workflow, row.attribute))]
    return WORKFLOW.written(
        workflow, {row.attribute: {row.name: [render_step(step, names) for step in steps]} for row, steps in said}
    )
