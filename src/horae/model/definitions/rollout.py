"""Rollouts: new executions of a job are shared out among its versions, which are compared before one takes over.

A share is kept by a key where there is one: what is rendered from an execution's params and tags is hashed to a point
between 0 and 1, and each version has a stretch of that line. A share that grows keeps what it had. Without a key, or
where it cannot be filled in, a fresh id is the point, or the present version runs.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Generic, Literal, TypeVar
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.errors import BadInput
from horae.model.base.key_templates import fill, scope_of
from horae.model.definitions.job import Spec

RolloutState = Literal["on", "promoted", "aborted"]
Outcome = Literal["success", "failed", "retried"]
T = TypeVar("T")

_POINTS = 2**64


class RolloutPlan(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How new executions are shared out: a weight for each version; and when that ends by itself."""

    shares: dict[int, float]
    by: str = ""  # a key as a template; equal keys keep to one version
    abort_above: float | None = None  # percent of attempts of another version than the present one that fail
    minimum: int = 20  # attempts of a version before it is judged

    def percents(self) -> dict[int, float]:
        """What each version gets of new executions."""
        total = sum(self.shares.values())
        return {version: round(100 * share / total, 2) for version, share in self.shares.items()}

    def version_at(self, point: float) -> int:
        """The version whose stretch of the line from 0 to 1 a point lies in; the newest has the first."""
        order = sorted(self.shares, reverse=True)
        left = point * sum(self.shares.values())
        for version in order:
            left -= self.shares[version]
            if left < 0:
                return version
        return next(version for version in reversed(order) if self.shares[version])


class Rollout(Struct, frozen=True, kw_only=True):
    """A job's newest rollout. `number` grows with each change of it, `since` is when it began."""

    job: UUID
    number: int
    state: RolloutState
    plan: RolloutPlan
    since: Instant
    changed_at: Instant
    cause: str = ""
    by: str = ""  # who changed it last; empty when nobody did


class VersionChoice(Struct, Generic[T], frozen=True, kw_only=True):
    """What new executions of a job are chosen from: its `arms`, by version. `current` is its present version."""

    rollout: Rollout
    current: int
    arms: Mapping[int, T]

    def of(self, spec: Spec, item: bytes, tags: Mapping[str, str], new_id: Callable[[], UUID]) -> T | None:
        """The arm of an execution; None when its key cannot be filled in: it runs the present version."""
        plan = self.rollout.plan
        try:
            key = fill(plan.by, scope_of(spec, item, tags), "by") if plan.by else str(new_id())
        except BadInput:
            return self.arms.get(self.current)
        return self.arms.get(plan.version_at(point_of(self.rollout.job, key)))


def point_of(job: UUID, key: str) -> float:
    """Where a key lies between 0 and 1: always the same for a job."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8, key=job.bytes).digest()) / _POINTS


class RolloutAttempts(Struct, frozen=True):
    """Items of a parcel that a rollout chose, and what an attempt of them came to; how long each took, if known."""

    parcel: UUID
    job: UUID
    outcome: Outcome
    count: int
    spans: tuple[Micros, ...] = ()
