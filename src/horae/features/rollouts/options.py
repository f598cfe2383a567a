"""Keyword arguments of the client. `python -m tools.sdk` writes this module from the tables of the fields."""

from collections.abc import Mapping
from typing import Any, TypedDict


class RolloutOptions(TypedDict, total=False):
    """The shares of versions in new executions."""

    version: int | None
    """The version to try, unless a change creates it."""
    change: Mapping[str, Any] | None
    """A JSON merge patch that creates the version to try."""
    share: str | float | None
    """The share of new executions that run this version."""
    versions: Mapping[int, float] | None
    """The weights of several versions, instead of a share."""
    by: str | None
    """A template for a key: executions with equal keys run the same version."""
    abort_above: str | float | None
    """Abort the rollout when more than this share of a tried version's attempts fails."""
    minimum: int | None
    """The number of a version's attempts before it is judged."""
