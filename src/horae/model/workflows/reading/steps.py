"""Steps of a workflow, in the API's format and in stored form."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import msgspec

from horae.errors import BadInput
from horae.model.definitions.field_kinds import TASK
from horae.model.definitions.job import JOB
from horae.model.executions.parcel import check_item
from horae.model.fields.table import Field, Row, Table, rows_of
from horae.model.fields.values import a_list, a_text, an_object, refuse_unknown
from horae.model.workflows.decisions.check import with_step_name
from horae.model.workflows.decisions.naming import check_step_name
from horae.model.workflows.decisions.values import CALL, MOST_STEPS, Call, WorkflowStep
from horae.model.workflows.kinds import StepField

_ACCEPTED = 'Write {"name": "load", "job": "load-orders", "after": ["extract"]}.'
_ONE_KIND = (
    "Give one action: job, command, python, http or steps; sleep, event, signal, approval or callback; or switch."
)
_UNDO = 'Write {"job": "remove-part", "params": {"part": "${steps.load.result}"}}.'


def _of_job(row: Row) -> Row:
    """Return the field of a step for a field of a job: it defines the step's own job, or overrides the job it names."""
    attributes = {one.name: getattr(row.field, one.name) for one in fields(Field)}
    is_task = row.group is TASK
    field = StepField(**{**attributes, "sdk": not is_task}, does=is_task, of_job=True)
    return Row(name=row.name, attribute="own", field=field, default=None, group=CALL)


def _step_rows() -> Iterable[Row]:
    """Return the rows of a step's table in order: its name, the fields of its job, and all other fields."""
    job, steps, params, name, *rest = rows_of(WorkflowStep)
    tasks = [_of_job(row) for row in JOB.rows if row.group is TASK]
    own = [_of_job(row) for row in JOB.rows if row.field.steps == "own"]
    return name, job, *tasks, steps, params, *own, *rest


STEP = Table(WorkflowStep, "A step", _step_rows())
KINDS = STEP.where(lambda field: field.does)
_RUNS = STEP.where(lambda field: field.does and field.of_job)
_FIELDS_OF_JOBS = STEP.where(lambda field: field.of_job and not field.does)
_OWN = tuple(row.name for row in STEP.rows if row.group is CALL and row.attribute == "own" and row.name != "steps")
TASKS = tuple(name for name in _OWN if name in _RUNS)
UNDO = tuple(row.name for row in STEP.rows if row.group is CALL)


@contextmanager
def of_step(name: str, place: str) -> Iterator[None]:
    """Add this step and its place in the definition to every error."""
    try:
        yield
    except BadInput as error:
        inner = str(error.fields.get("field", ""))
        error.fields["field"] = f"{place}.{inner}" if inner else place
        error.fields.setdefault("step", name)
        error.detail = with_step_name(name, error.detail)
        raise


def read_steps(value: Any, field: str) -> tuple[WorkflowStep, ...]:
    """Parse a list of steps."""
    listed = a_list(value, field, f"List the steps: [{{...}}]. {_ACCEPTED}", MOST_STEPS)
    return tuple(_read(one, f"{field}[{i}]") for i, one in enumerate(listed))


def _read(value: Any, place: str) -> WorkflowStep:
    given = _given_fields(value, place, _ACCEPTED)
    if "name" not in given:
        raise BadInput(f"{place} has no name.", _ACCEPTED, field=f"{place}.name")
    try:
        name = check_step_name(given["name"])
    except BadInput as error:
        raise BadInput(error.detail, error.remedy, field=f"{place}.name") from None
    with of_step(name, place):
        _refuse_template(given)
        if "most" in given:  # the former name of `maxRuns`, in stored templates and nested workflows
            given.setdefault("maxRuns", given.pop("most"))
        STEP.refuse_unknown(given)
        return _step(given)


def _refuse_template(given: Mapping[str, Any], prefix: str = "") -> None:
    """Refuse a step that names a template: only jobs are made from templates, and change with them."""
    if "template" in given:
        remedy = 'Make a job from the template, and name this job in the step: {"name": "eu", "job": "backup-eu"}.'
        raise BadInput("A step cannot be made from a template.", remedy, field=f"{prefix}template")


def _given_fields(value: Any, at: str, remedy: str) -> dict[str, Any]:
    return {name: part for name, part in an_object(value, at, remedy).items() if part is not None}


def _step(given: dict[str, Any]) -> WorkflowStep:
    kinds = [kind for kind in KINDS if kind in given]
    if len(kinds) != 1:
        problem = f"It has several actions: {' and '.join(kinds)}." if kinds else "It has no action."
        raise BadInput(problem, _ONE_KIND, field=kinds[1] if kinds else "job")
    runs = kinds[0] in _RUNS
    if not runs:
        _refuse_fields_of_jobs(given, kinds[0])
    call = read_call(given) if runs else {}
    undo: dict[str, Any] = {"undo": _read_undo(given["undo"])} if "undo" in given else {}
    return WorkflowStep(**call, **STEP.read(given), **undo)


def _refuse_fields_of_jobs(given: Mapping[str, Any], kind: str) -> None:
    """Refuse fields about a job in a step that runs no job."""
    for field in _FIELDS_OF_JOBS:
        if field in given:
            detail = f"{field} does not apply to a step with {kind}, because it runs no job."
            raise BadInput(detail, f"Remove `{field}`.", field=field)


def read_call(given: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Parse a step's job and params: the fields of a `Call`."""
    own = {field: given[field] for field in _OWN if field in given}
    if "steps" in given:
        own["workflow"] = {"steps": given["steps"]}
    params = given.get("params")
    if params is not None:
        _check_params(params, f"{prefix}params")
    job = a_text(given["job"], f"{prefix}job", most=128, least=1) if "job" in given else ""
    return {"job": job, "own": own, "params": params}


def _check_params(value: Any, at: str) -> None:
    params = an_object(value, at, 'Write an object such as {"day": "${params.day}"}.')
    try:
        check_item(msgspec.json.encode(params))
    except (TypeError, ValueError, RecursionError):
        raise BadInput(f"{at} is not JSON.", "Use texts, numbers, lists and objects.", field=at) from None


def _read_undo(value: Any) -> Call:
    given = _given_fields({"job": value} if isinstance(value, str) else value, "undo", _UNDO)
    _refuse_template(given, "undo.")
    refuse_unknown(given, UNDO, "undo", "undo.")
    if len([kind for kind in _RUNS if kind in given]) != 1:
        raise BadInput("undo must run exactly one job or task.", _UNDO, field="undo")
    return Call(**read_call(given, "undo."))


def render_step(step: WorkflowStep, names: Mapping[str, str]) -> dict[str, Any]:
    """Format a step in the API's spelling, without default values."""
    undo = {} if step.undo is None else {"undo": {"undo": _render_call(step.undo, names)}}
    return STEP.write_changed(step, {"job": _render_call(step, names), **undo})


def _render_call(call: Call, names: Mapping[str, str]) -> dict[str, Any]:
    own = dict(call.own)
    if is_short(own):
        own["steps"] = own.pop("workflow")["steps"]
    job = {"job": names.get(call.job, call.job)} if call.job else {}
    return {**job, **own, **({} if call.params is None else {"params": call.params})}


def is_short(own: Mapping[str, Any]) -> bool:
    """Return whether an owned job is a nested workflow with nothing but steps, which has the short form `steps`."""
    nested = own.get("workflow")
    return isinstance(nested, dict) and set(nested) == {"steps"}
