"""The template from which a job is made, the values of its parameters, and the job's own fields."""

from typing import Any
from uuid import UUID

from msgspec import Struct, field


class TemplateUse(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A template by id and name; `own` are the fields that the job sets itself, merged over those of the template."""

    template: UUID
    name: str
    values: dict[str, Any] = field(default_factory=dict, name="with")
    own: dict[str, Any] = {}


def source_of(name: str, made: TemplateUse) -> dict[str, Any]:
    """Return the definition that the user wrote for a job that uses a template."""
    values = {"with": made.values} if made.values else {}
    return {"name": name, "template": made.name, **values, **{k: v for k, v in made.own.items() if k != "name"}}
