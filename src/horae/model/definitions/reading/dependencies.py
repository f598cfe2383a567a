"""`dependencies`: other jobs, by name or id, each with the condition under which this job runs."""

from collections.abc import Mapping
from typing import Any

from horae.errors import BadInput
from horae.model.fields.values import a_list, a_text, kind_of, one_of, refuse_unknown
from horae.model.triggers.dependency import CONDITIONS, Condition

MOST = 256
_HOW = 'Name other jobs: ["extract"], or with a condition: [{"job": "extract", "condition": "failure"}].'


def read_dependencies(value: Any, name: str) -> dict[str, Condition]:
    """Read the jobs that a job depends on, by name or id, with their conditions."""
    found: dict[str, Condition] = {}
    for i, one in enumerate(a_list(value, "dependencies", _HOW, MOST)):
        ref, condition = _read(one, f"dependencies[{i}]")
        if ref == name:
            raise BadInput(f'Job "{name}" cannot depend on itself.', "Remove it from its list.", field="dependencies")
        if found.setdefault(ref, condition) != condition:
            remedy = 'Name it once; "finished" stands for its success and its failure.'
            raise BadInput(f'"{ref[:60]}" has two conditions.', remedy, field=f"dependencies[{i}].condition")
    return found


def _read(value: Any, field: str) -> tuple[str, Condition]:
    if isinstance(value, str):
        return a_text(value, field, most=128, least=1), "success"
    if not isinstance(value, dict):
        raise BadInput(f"{field} is {kind_of(value)}, neither a text nor an object.", _HOW, field=field)
    refuse_unknown(value, ("job", "condition"), "A dependency", f"{field}.")
    if "job" not in value:
        raise BadInput(f"{field} does not name a job.", _HOW, field=f"{field}.job")
    condition: Any = one_of(value.get("condition", "success"), f"{field}.condition", CONDITIONS)
    return a_text(value["job"], f"{field}.job", most=128, least=1), condition


def render_dependency(name: str, job_id: str, conditions: Mapping[str, Condition]) -> str | dict[str, str]:
    """Write a dependency: just the name when the condition is success."""
    return {"job": name, "condition": conditions[job_id]} if job_id in conditions else name
