"""What is counted of the versions that a rollout compares, and when that ends it."""

from collections.abc import Collection, Iterator, Mapping
from math import log2

from msgspec import Struct

from horae.env import Micros
from horae.model.definitions.rollout import Outcome, RolloutAttempts, RolloutPlan

STEPS = 8  # buckets in which durations are counted, for each power of two: 9 % apart
UNTIMED = -1


def buckets_of(trial: RolloutAttempts) -> Iterator[tuple[int, int]]:
    """In which buckets a trial is counted, and how many in each; what is of no known duration in the first."""
    yield from ((bucket_of(span), 1) for span in trial.spans)
    if trial.count > len(trial.spans):
        yield UNTIMED, trial.count - len(trial.spans)


def bucket_of(span: Micros) -> int:
    """The bucket in which a duration is counted."""
    return int(log2(span) * STEPS) if span > 1 else 0


def span_of(bucket: int) -> Micros:
    """The duration that a bucket stands for: its middle."""
    return round(2 ** ((bucket + 0.5) / STEPS))


class Tally(Struct):
    """What was counted of one version."""

    outcomes: dict[str, int] = {}
    spans: dict[int, int] = {}  # bucket -> how many successes

    def add(self, outcome: str, bucket: int, count: int) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count
        if outcome == "success" and bucket != UNTIMED:
            self.spans[bucket] = self.spans.get(bucket, 0) + count

    def count(self, *outcomes: Outcome) -> int:
        return sum(self.outcomes.get(outcome, 0) for outcome in outcomes)

    @property
    def attempts(self) -> int:
        return self.count("success", "failed", "retried")

    @property
    def failure_rate(self) -> float | None:
        """Percent of the attempts that failed; those of retries count, too. None before there is any."""
        return 100 * self.count("failed", "retried") / self.attempts if self.attempts else None

    def percentile(self, percent: float) -> Micros | None:
        """How long so many percent of the successes took at most, to a tenth or so."""
        wanted = sum(self.spans.values()) * percent / 100
        for bucket in sorted(self.spans):
            wanted -= self.spans[bucket]
            if wanted <= 0:
                return span_of(bucket)
        return None


def judge(plan: RolloutPlan, current: int, tallies: Mapping[int, Tally]) -> str | None:
    """Why a rollout is to be aborted; None: it goes on. The present version is what others are measured by."""
    if plan.abort_above is None:
        return None
    for version in sorted(plan.shares.keys() - {current}):
        tally = tallies.get(version)
        rate = None if tally is None or tally.attempts < plan.minimum else tally.failure_rate
        if tally is not None and rate is not None and rate > plan.abort_above:
            failed = tally.count("failed", "retried")
            return (
                f"{failed} of {tally.attempts} attempts of version {version} failed ({rate:.0f} %), more than"
                f" {plan.abort_above:g} %."
            )
    return None


def others(plan: RolloutPlan, current: int) -> Collection[int]:
    """The versions beside the present one."""
    return sorted(plan.shares.keys() - {current})
