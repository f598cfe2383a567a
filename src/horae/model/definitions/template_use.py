"""What a job was made from: a template, the values of its parameters, and what the job says instead."""

from typing import Any
from uuid import UUID

from msgspec import Struct, field


class TemplateUse(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A template by its id and name; `own` are the fields of the job's definition that the template does not decide."""

    template: UUID
    name: str
    values: dict[str, Any] = field(default_factory=dict, name="with")
    own: dict[str, Any] = {}


def source_of(name: str, made: TemplateUse) -> dict[str, Any]:
    """What the user said about a job that was made from a template."""
    values = {"with": made.values} if made.values else {}
    return {"name": name, "template": made.name, **values, **{k: v for k, v in made.own.items() if k != "name"}}
