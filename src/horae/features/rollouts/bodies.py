"""Bodies of the rollouts' routes."""

from typing import Annotated

from msgspec import Meta

from horae.features.rollouts.model.read import ROLLOUT
from horae.model.fields.derived import body
from horae.server.reading.bodies import RequestBody

RolloutBody = body(
    ROLLOUT,
    "RolloutBody",
    "Which versions new executions go to: `version` or `change` with a `share`, or weights of `versions`.",
    RequestBody,
)


class PromoteRollout(RequestBody, frozen=True, kw_only=True):
    """Which version becomes the present one; the only one that is tried, otherwise."""

    version: Annotated[int, Meta(ge=1, le=2**31 - 1, description="Which, if several are tried.")] | None = None


class AbortRollout(RequestBody, frozen=True, kw_only=True):
    """Why a rollout is aborted."""

    reason: Annotated[str, Meta(description="Why; it is kept with the rollout.")] = ""
