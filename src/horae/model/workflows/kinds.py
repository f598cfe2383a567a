"""What the tables of workflows share: how parts are stored, what a field says about steps, and kinds of values."""

from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from horae.model.fields.kinds import Custom
from horae.model.fields.table import Field
from horae.model.fields.values import a_list, a_text

MOST_AFTER = 1000  # as many as a workflow has steps
_AFTER = 'Name other steps: ["extract"].'


class Part(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a workflow as it is stored: camelCase, spans in microseconds, expressions as they were written."""


@dataclass(frozen=True, eq=False)
class StepField(Field):
    """A field of a step, with the steps that may have it."""

    does: bool = False  # says what the step does: each step has exactly one of these
    of_job: bool = False  # is about a job that the step runs


def read_names(value: Any, at: str) -> tuple[str, ...]:
    """Read names of steps; a single one may stand without a list."""
    listed = a_list([value] if isinstance(value, str) else value, at, _AFTER, MOST_AFTER)
    return tuple(a_text(name, f"{at}[{i}]", most=128, least=1) for i, name in enumerate(listed))


def read_condition(value: Any, at: str) -> str:
    """Read a condition as it is kept; a plain yes or no is one, too."""
    if isinstance(value, bool):
        return "${true}" if value else "${false}"
    return a_text(value, at, most=4096)


# In the SDK, what another step returns stands in these for the step.
CONDITION = Custom(read_condition, bool | str, out=str)
AFTER = Custom(
    lambda value, at: tuple(dict.fromkeys(read_names(value, at))),
    str | list[str],
    writes=list,
    out=list[str],
    option="repeated",
)
