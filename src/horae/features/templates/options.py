"""Keyword arguments of the client. `python -m tools.sdk` writes this module from the tables of the fields."""

from collections.abc import Mapping
from typing import Any, TypedDict


class TemplateFields(TypedDict, total=False):
    """The fields of a template."""

    job: Mapping[str, Any] | None
    """A job's definition without its name, with placeholders such as `${with.region}` in texts."""
    description: str | None
    """What it is for."""
    parameters: Mapping[str, Mapping[str, Any]] | None
    """A JSON schema for each parameter. Jobs may omit parameters whose schema has a default."""
