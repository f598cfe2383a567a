"""Rollouts as the API shows them: the share of each version, and the results of its executions."""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from msgspec import Meta

from horae.features.rollouts.model.values import Tally
from horae.model.base.duration import format_duration
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.model.definitions.rollout import Rollout, RolloutState


class RolloutVersionView(View, frozen=True, kw_only=True):
    """A version in a rollout, and its counts since the rollout began."""

    version: int
    current: bool
    share: Annotated[float, Meta(description="Percent of new executions.")]
    succeeded: int
    failed: Annotated[int, Meta(description="Executions that failed for good.")]
    retried: Annotated[int, Meta(description="Attempts that failed and were followed by another.")]
    failure_rate: Annotated[float | None, Meta(description="Percent of attempts that failed.")]
    p50: str | None
    p95: str | None
    p99: str | None


class RolloutView(View, frozen=True, kw_only=True):
    """A job's newest rollout. Counts are at most a few seconds old; durations are those of successful attempts."""

    job_id: UUID
    job: str
    state: RolloutState
    since: Time
    changed_at: Time
    changed_by: str | None
    cause: str
    by: str | None
    abort_above: float | None
    minimum: int
    versions: list[RolloutVersionView]


def show_rollout(rollout: Rollout, job: str, current: int, tallies: Mapping[int, Tally]) -> RolloutView:
    """Return the view of a rollout, its newest version first."""
    plan = rollout.plan
    percents = plan.percents()
    return RolloutView(
        job_id=rollout.job,
        job=job,
        state=rollout.state,
        since=format_instant(rollout.since),
        changed_at=format_instant(rollout.changed_at),
        changed_by=rollout.by or None,
        cause=rollout.cause,
        by=plan.by or None,
        abort_above=plan.abort_above,
        minimum=plan.minimum,
        versions=[
            _arm(version, version == current, percents[version], tallies.get(version, Tally()))
            for version in sorted(plan.shares, reverse=True)
        ],
    )


def _arm(version: int, current: bool, share: float, tally: Tally) -> RolloutVersionView:
    rate = tally.failure_rate
    return RolloutVersionView(
        version=version,
        current=current,
        share=share,
        succeeded=tally.count("success"),
        failed=tally.count("failed"),
        retried=tally.count("retried"),
        failure_rate=None if rate is None else round(rate, 2),
        p50=_took(tally, 50),
        p95=_took(tally, 95),
        p99=_took(tally, 99),
    )


def _took(tally: Tally, percent: int) -> str | None:
    span = tally.percentile(percent)
    return None if span is None else format_duration(_rounded(span))


def _rounded(span: int) -> int:
    """Round to three digits, because the value is not more accurate."""
    unit = int(10 ** max(0, len(str(span)) - 3))
    return round(span / unit) * unit
