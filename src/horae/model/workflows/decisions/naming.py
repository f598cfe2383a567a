"""Names of steps, and of the jobs that a workflow owns for them."""

import re
from collections.abc import Iterator
from typing import Any

from horae.errors import BadInput
from horae.model.workflows.decisions.values import Call, Workflow, undo_name

STEP = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
OWNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}(?:/[A-Za-z][A-Za-z0-9_-]{0,63}(?::undo)?)+")


def check_step_name(value: Any) -> str:
    """Validate the name of a step. Raises BadInput."""
    if not isinstance(value, str) or not STEP.fullmatch(value):
        shown = repr(value[:60]) if isinstance(value, str) else "The given value"
        remedy = "Use 1 to 64 letters, digits, dashes and underscores, beginning with a letter."
        raise BadInput(f"{shown} is not a valid name of a step.", remedy, field="name")
    return value


def calls_of(workflow: Workflow) -> Iterator[tuple[str, Call]]:
    """Yield the calls of a workflow's steps and of their undo steps, each with the name under which it is stored."""
    for step in workflow.everything:
        if step.job or step.own:
            yield step.name, step
        if step.undo is not None:
            yield undo_name(step.name), step.undo


def owned_name(workflow: str, call: str) -> str:
    """Return the name of the job that a workflow owns for one of its steps; users cannot choose such a name."""
    return f"{workflow}/{call}"


def owner_of(name: str) -> str:
    """Return the name of the job that a user defined: the job's own name, or for an owned job the workflow's name."""
    return name.partition("/")[0]


def is_owned_name(name: str) -> bool:
    """Return whether a job is owned by a workflow, judged by its name."""
    return "/" in name
