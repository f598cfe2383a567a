"""Rollouts: new executions of a job are split between its versions, which are compared before one takes over.

With a key, the split is stable: the key, rendered from an execution's params and tags, is hashed to a point between 0
and 1, and each version has a part of that range. When the share of the newest version grows, that version keeps the
keys that it had. Without a key, a fresh id is hashed for each execution. When the key cannot be filled in, the current
version runs.
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
    """The weight of each version for new executions, and the condition that aborts the rollout."""

    shares: dict[int, float]
    by: str = ""  # a key template; equal keys run the same version
    abort_above: float | None = None  # percentage of failed attempts of a version other than the current one
    minimum: int = 20  # attempts of a version before it is judged

    def percents(self) -> dict[int, float]:
        """Return the percentage of new executions for each version."""
        total = sum(self.shares.values())
        return {version: round(100 * share / total, 2) for version, share in self.shares.items()}

    def version_at(self, point: float) -> int:
        """Return the version for a point between 0 and 1.

        Each version has a part of that range as large as its share; the newest version has the first part.
        """
        order = sorted(self.shares, reverse=True)
        left = point * sum(self.shares.values())
        for version in order:
            left -= self.shares[version]
            if left < 0:
                return version
        return next(version for version in reversed(order) if self.shares[version])


class Rollout(Struct, frozen=True, kw_only=True):
    """A job's newest rollout. `number` grows with each change; `since` is its start."""

    job: UUID
    number: int
    state: RolloutState
    plan: RolloutPlan
    since: Instant
    changed_at: Instant
    cause: str = ""
    by: str = ""  # the user who changed it last; empty when it changed by itself


class VersionChoice(Struct, Generic[T], frozen=True, kw_only=True):
    """The versions of a job between which new executions are split.

    `arms` has a value for each version, from which executions are created; `current` is the current version.
    """

    rollout: Rollout
    current: int
    arms: Mapping[int, T]

    def of(self, spec: Spec, item: bytes, tags: Mapping[str, str], new_id: Callable[[], UUID]) -> T | None:
        """Return the arm of the version that an execution gets; the current version's if the key cannot be filled in.

        Return None if that version has no arm.
        """
        plan = self.rollout.plan
        try:
            key = fill(plan.by, scope_of(spec, item, tags), "by") if plan.by else str(new_id())
        except BadInput:
            return self.arms.get(self.current)
        return self.arms.get(plan.version_at(point_of(self.rollout.job, key)))


def point_of(job: UUID, key: str) -> float:
    """Return the point of a key between 0 and 1, which is always the same for this job and key."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8, key=job.bytes).digest()) / _POINTS


class RolloutAttempts(Struct, frozen=True):
    """Attempts of items of a parcel whose version a rollout chose: their number, outcome and, if known, durations."""

    parcel: UUID
    job: UUID
    outcome: Outcome
    count: int
    durations: tuple[Micros, ...] = ()
