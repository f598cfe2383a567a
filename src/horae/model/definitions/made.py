"""What a job was made from: a template, the values of its parameters, and what the job says instead."""

from typing import Any
from uuid import UUID

from msgspec import Struct, field


class Made(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A template by its id and name; `own` are the fields of the job's definition that the template does not decide."""

    template: UUID
    name: str
    values: dict[str, Any] = field(default_factory=dict, name="with")
    own: dict[str, Any] = {}
