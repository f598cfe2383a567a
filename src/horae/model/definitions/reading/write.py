"""The API form of a spec."""

from collections.abc import Mapping
from typing import Any

from horae.model.definitions.job import JOB, Spec
from horae.model.definitions.reading.dependencies import render_dependency
from horae.model.definitions.reading.task import render_task


def render_definition(spec: Spec, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Write every field, but only the task that the job has; `names` maps ids of dependencies to names."""
    known = names or {}
    made = {} if spec.made is None else {"template": spec.made.name, "with": spec.made.values}
    return JOB.write(
        spec,
        {
            "task": dict([render_task(spec.task, known)]),
            "dependencies": {
                "dependencies": [
                    render_dependency(known.get(job, job), job, spec.conditions) for job in spec.dependencies
                ]
            },
            "made": made,
        },
    )
