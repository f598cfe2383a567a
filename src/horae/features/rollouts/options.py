"""Keywords of requests. `python -m tools.sdk` writes this module from the tables of their fields."""

from collections.abc import Mapping
from typing import Any, TypedDict


class RolloutOptions(TypedDict, total=False):
    """The shares of versions in new executions."""

    version: int | None
    """The version to try, unless a change creates it."""
    change: Mapping[str, Any] | None
    """A JSON merge patch; it makes the version to try."""
    share: str | float | None
    """The share of new executions that run it."""
    versions: Mapping[int, float] | None
    """Weights of versions, instead of a share."""
    by: str | None
    """Executions with equal keys run the same version."""
    abort_above: str | float | None
    """Abort it when a larger share of another version's attempts fails."""
    minimum: int | None
    """Attempts before a version is judged."""
