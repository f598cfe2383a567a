"""Bodies of the rollouts' routes."""

from typing import Annotated, Any

from msgspec import Meta

from horae.server.reading.bodies import Body

Percent = Annotated[str | float, Meta(description='A share, as "10%" or 10.')]


class RolloutBody(Body, frozen=True, kw_only=True):
    """Which versions new executions go to: `version` or `change` with a `share`, or weights of `versions`."""

    version: int | None = None
    change: (
        Annotated[dict[str, Any], Meta(description="A JSON merge patch; it makes the version to be tried.")] | None
    ) = None
    share: Percent | None = None
    versions: Annotated[dict[str, float], Meta(description='Weights by version: {"6": 90, "7": 10}.')] | None = None
    by: Annotated[str, Meta(description="A key; equal keys keep to one version.")] | None = None
    abort_above: Annotated[Percent, Meta(description="Abort when more attempts of another version fail.")] | None = None
    minimum: Annotated[int, Meta(description="Attempts before a version is judged.")] | None = None


class PromoteRollout(Body, frozen=True, kw_only=True):
    """Which version becomes the present one; the only one that is tried, otherwise."""

    version: Annotated[int, Meta(ge=1, le=2**31 - 1, description="Which, if several are tried.")] | None = None


class AbortRollout(Body, frozen=True, kw_only=True):
    """Why a rollout is aborted."""

    reason: Annotated[str, Meta(description="Why; it is kept with the rollout.")] = ""
