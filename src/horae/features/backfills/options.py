"""Keyword arguments of the client. `python -m tools.sdk` writes this module from the tables of the fields."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict


class BackfillOptions(TypedDict, total=False):
    """The options of a backfill."""

    trigger: str | None
    """Only this trigger of the job; by default, all with cron, every or at."""
    max_concurrent: int | None
    """How many of its executions may be live."""
    order: Literal["oldest", "newest"] | None
    """The fires to run first."""
    force: bool | None
    """Also run fires that ran before."""
    priority: int | None
    """Replaces the job's priority: 0 (least urgent) to 9 (most urgent)."""
    params: Mapping[str, Any] | None
    """Override the params of the job and the trigger."""
