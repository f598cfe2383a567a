"""Keyword arguments of the client. `python -m tools.sdk` writes this module from the tables of the fields."""

from collections.abc import Mapping
from typing import Any, TypedDict


class ErasureOptions(TypedDict, total=False):
    """The executions to erase: all given conditions must hold."""

    job: str | None
    """Only executions of this job."""
    tag: str | None
    """Only executions with this tag: "name" or "name=value"."""
    key: str | None
    """Only executions submitted with this key."""
    params: Mapping[str, Any] | None
    """Only executions submitted with these params."""
