"""Shared parts of the tables of workflows: stored parts, fields of steps, and kinds of values."""

from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from horae.model.fields.kinds import Custom
from horae.model.fields.table import Field
from horae.model.fields.values import a_list, a_text

MOST_AFTER = 1000  # as many as a workflow has steps
_AFTER = 'Name other steps: ["extract"].'


class WorkflowPart(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a workflow as it is stored: camelCase, spans in microseconds, expressions in their source form."""


@dataclass(frozen=True, eq=False)
class StepField(Field):
    """A field of a step, with metadata about the steps that may have it."""

    does: bool = False  # defines the step's action: each step has exactly one such field
    of_job: bool = False  # concerns a job that the step runs


def read_names(value: Any, at: str) -> tuple[str, ...]:
    """Parse names of steps; a single name may be given without a list."""
    listed = a_list([value] if isinstance(value, str) else value, at, _AFTER, MOST_AFTER)
    return tuple(a_text(name, f"{at}[{i}]", most=128, least=1) for i, name in enumerate(listed))


def read_condition(value: Any, at: str) -> str:
    """Parse a condition into its stored form; a plain boolean is accepted too."""
    if isinstance(value, bool):
        return "${true}" if value else "${false}"
    return a_text(value, at, most=4096)


# In the SDK, the return value of another step can be used here in place of the step.
CONDITION = Custom(read_condition, bool | str, out=str)
AFTER = Custom(
    lambda value, at: tuple(dict.fromkeys(read_names(value, at))),
    str | list[str],
    writes=list,
    out=list[str],
    option="repeated",
)
