"""Bodies of requests about jobs, for the OpenAPI document. `model/definitions` reads them and reports every mistake."""

from typing import Annotated, Any

from msgspec import Meta

from horae.model.definitions.job import JOB
from horae.model.fields.derived import body
from horae.model.fields.kinds import SpanText
from horae.model.workflows.decisions.values import STEPS
from horae.model.workflows.reading.steps import STEP
from horae.model.workflows.reading.workflow import WORKFLOW
from horae.server.reading.bodies import RequestBody

StepBody = body(
    STEP,
    "StepBody",
    "A step: its name, one field with its task, and options. With `job`, the options override those of that job.",
    RequestBody,
    needed=("name",),
)

_STEPS: Any = list[StepBody]  # type: ignore[valid-type] # created at run time


class _Limited(RequestBody, frozen=True, kw_only=True):
    timeout: Annotated[SpanText | None, Meta(description="The same as the job's `timeout`.")] = None


WorkflowBody = body(
    WORKFLOW,
    "WorkflowBody",
    "A workflow: each of its steps is an execution of its own.",
    _Limited,
    needed=("steps",),
    types={row.name: _STEPS for row in WORKFLOW.rows if row.kind is STEPS},
)
_TYPES = {"workflow": _STEPS | WorkflowBody}

JobPatch = body(
    JOB, "JobPatch", "Parts of a job's definition; null resets a field to its default.", RequestBody, types=_TYPES
)
JobBody = body(
    JOB,
    "JobBody",
    "A job: its name, one of command, python, http and workflow, and options that differ from the defaults.",
    RequestBody,
    needed=("name",),
    types=_TYPES,
)
