"""Keywords of requests. `python -m tools.sdk` writes this module from the tables of their fields."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict


class BackfillOptions(TypedDict, total=False):
    """The options of a backfill."""

    trigger: str | None
    """Only this trigger of the job; all that fire at instants otherwise."""
    max_concurrent: int | None
    """How many executions are live at a time."""
    order: Literal["oldest", "newest"] | None
    """Which fires go first."""
    force: bool | None
    """Run what ran before, too."""
    priority: int | None
    """Instead of the job's: 0 (least urgent) to 9 (most urgent)."""
    params: Mapping[str, Any] | None
    """Over the params of the job and the trigger."""
