"""The `workflow` field of a job, in the API's format and in stored form."""

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
# Fields of a definition that contain other definitions.
INSIDE = tuple(
    dict.fromkeys(
        row.name for row in (*WORKFLOW.rows, *STEP.rows) if row.kind in (STEPS, UNDOING, JOB["workflow"].kind)
    )
)
# Fields that a workflow's job cannot have, because it runs on no worker and is not retried; with the remedy for each.
NOT_OF_WORKFLOWS = {row.name: row.field.no_workflow for row in JOB.rows if row.field.no_workflow}
_ACCEPTED = 'Write {"steps": [{"name": "extract", "job": "extract-orders"}, {"name": "load", "job": "load-orders"}]}.'


def parse_workflow(value: Any) -> Workflow:
    """Parse a workflow; every error names its step."""
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
    """Move `workflow.timeout` to the job's `timeout`, where it is stored; refuse fields that a workflow cannot have."""
    workflow = given.get("workflow")
    if workflow is None:
        return given
    for field, remedy in NOT_OF_WORKFLOWS.items():
        if given.get(field) and (field, given[field]) != ("slots", 1):
            raise BadInput(f"{field} does not apply to a workflow.", remedy, field=field)
    if not isinstance(workflow, dict) or workflow.get("timeout") is None:
        return given
    if given.get("timeout") not in (None, workflow["timeout"]):
        detail = f"timeout is {given['timeout']} and workflow.timeout is {workflow['timeout']}."
        raise BadInput(detail, "Both set the same limit: give only one of them.", field="workflow.timeout")
    rest = {name: part for name, part in workflow.items() if name != "timeout"}
    return {**given, "timeout": workflow["timeout"], "workflow": rest}


def check_owned(workflow: Workflow, read: Callable[[dict[str, Any]], object]) -> None:
    """Check the jobs that the workflow owns for its steps: `read` parses each definition, which has no name."""
    places = {step.name: place for place, step in placed(workflow)}
    for name, call in calls_of(workflow):
        if call.own:
            step, _, undoing = name.partition(":")
            with of_step(step, f"{places[step]}.undo" if undoing else places[step]):
                _check_own(call, read)


def _check_own(call: Call, read: Callable[[dict[str, Any]], object]) -> None:
    """Parse the definition of an owned job.

    If a step only overrides fields of the job that it names, a placeholder stands for the task of that job.
    """
    try:
        with inside(call):
            read(call.own if call.inline else {"command": "true", **call.own})
    except BadInput as error:
        field = str(error.fields.get("field", ""))
        if field.partition(".")[0].partition("[")[0] in TASKS and "refers to 'steps'" in error.detail:
            error.remedy = 'A task can use only its params: write "params": {"rows": "${steps.NAME.result}"}.'
        raise


@contextmanager
def inside(call: Call) -> Iterator[None]:
    """In errors about nested steps in the short form, name the field `steps` instead of `workflow.steps`."""
    try:
        yield
    except BadInput as error:
        if is_short(call.own):
            error.fields["field"] = str(error.fields.get("field", "")).removeprefix("workflow.")
        raise


def placed(workflow: Workflow) -> list[tuple[str, Any]]:
    """Return each step with its path in the definition, such as `workflow.steps[0]`."""
    return [
        (f"workflow.{row.name}[{i}]", step) for row in _STEPS for i, step in enumerate(getattr(workflow, row.attribute))
    ]


def render_workflow(workflow: Workflow, names: Mapping[str, str]) -> dict[str, Any]:
    """Format a workflow in the API's spelling; `names` maps ids of jobs to their names."""
    given = [(row, steps) for row in _STEPS if (steps := getattr(workflow, row.attribute))]
    return WORKFLOW.write_changed(
        workflow, {row.attribute: {row.name: [render_step(step, names) for step in steps]} for row, steps in given}
    )
