"""Jobs that a workflow owns for its steps: defined inside it, or derived from a job that a step names."""

from collections.abc import Callable
from typing import Any

from msgspec import structs

from horae.model.definitions.job import JOB, Spec
from horae.model.definitions.reading.patch import merge_definition
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.write import render_definition
from horae.model.workflows.decisions.values import Call, Workflow, WorkflowStep, undo_name

# Fields that a step does not inherit from the job that it names, such as triggers and deduplication.
_NOT_TAKEN_OVER = JOB.where(lambda field: field.steps == "never")


def derive(name: str, call: Call, base: Spec | None, queue: str) -> Spec:
    """Return the job of a step: the step's own fields, merged over the fields of the job that the step names.

    If it names no job, the step's own fields define the job, by default in the workflow's `queue`.
    """
    if base is None:
        body: dict[str, Any] = {"queue": queue, **call.own}
    else:
        taken = {field: value for field, value in render_definition(base).items() if field not in _NOT_TAKEN_OVER}
        body = merge_definition(taken, call.own)
    spec = parse_definition({**body, "name": "step"}, namespace_name="", created_at=0).spec
    return structs.replace(spec, name=name)


def with_calls(workflow: Workflow, stored: Callable[[str, Call], dict[str, Any]]) -> Workflow:
    """Return the workflow with some fields of its calls replaced.

    `stored` is called with the name under which a call is stored, and the call; it returns the fields to replace.
    """

    def changed(step: WorkflowStep) -> WorkflowStep:
        if step.job or step.own:
            step = structs.replace(step, **stored(step.name, step))
        if step.undo is not None:
            undo = structs.replace(step.undo, **stored(undo_name(step.name), step.undo))
            step = structs.replace(step, undo=undo)
        return step

    return structs.replace(
        workflow,
        steps=tuple(map(changed, workflow.steps)),
        on_success=tuple(map(changed, workflow.on_success)),
        on_failure=tuple(map(changed, workflow.on_failure)),
        last=tuple(map(changed, workflow.last)),
    )
