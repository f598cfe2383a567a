"""Names of steps, and of the jobs that a workflow keeps for them."""

import re
from collections.abc import Iterator
from typing import Any

from horae.errors import BadInput
from horae.model.workflows.decisions.values import Call, Workflow, undo_name

STEP = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
OWNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}(?:/[A-Za-z][A-Za-z0-9_-]{0,63}(?::undo)?)+")


def a_step_name(value: Any) -> str:
    """The name of a step. Raises BadInput."""
    if not isinstance(value, str) or not STEP.fullmatch(value):
        shown = repr(value[:60]) if isinstance(value, str) else "That"
        remedy = "Use 1 to 64 letters, digits, dashes and underscores, beginning with a letter."
        raise BadInput(f"{shown} is not a valid name of a step.", remedy, field="name")
    return value


def calls_of(workflow: Workflow) -> Iterator[tuple[str, Call]]:
    """What the steps of a workflow run, undoings included, by the names under which that is kept."""
    for step in workflow.everything:
        if step.job or step.own:
            yield step.name, step
        if step.undo is not None:
            yield undo_name(step.name), step.undo


def owned_name(workflow: str, call: str) -> str:
    """The name of the job that a workflow keeps for one of its steps; no user can name a job so."""
    return f"{workflow}/{call}"


def owner_of(name: str) -> str:
    """The name of the job that a user made: of a part of a workflow, the workflow's."""
    return name.partition("/")[0]


def is_owned_name(name: str) -> bool:
    """Whether a job is a part of a workflow, by its name."""
    return "/" in name
