"""Request bodies of the rollouts' routes."""

from typing import Annotated

from msgspec import Meta

from horae.features.rollouts.model.read import ROLLOUT
from horae.model.fields.derived import body
from horae.server.reading.bodies import RequestBody

RolloutBody = body(
    ROLLOUT,
    "RolloutBody",
    "The versions that new executions run: `version` or `change` with a `share`, or weights of `versions`.",
    RequestBody,
)


class PromoteRollout(RequestBody, frozen=True, kw_only=True):
    """The version that becomes the current one; by default, the only other version of the rollout."""

    version: Annotated[int, Meta(ge=1, le=2**31 - 1, description="The version, if several are tried.")] | None = None


class AbortRollout(RequestBody, frozen=True, kw_only=True):
    """The reason why a rollout is aborted."""

    reason: Annotated[str, Meta(description="The reason, stored with the rollout.")] = ""
