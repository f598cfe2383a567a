"""The counts of each version's attempts in a rollout, and the decision to abort the rollout."""

from collections.abc import Collection, Iterator, Mapping
from math import log2

from msgspec import Struct

from horae.env import Micros
from horae.model.definitions.rollout import Outcome, RolloutAttempts, RolloutPlan

BUCKETS_PER_DOUBLING = 8  # duration buckets per power of two, so that a bucket is 9 % longer than the one before
UNKNOWN_DURATION = -1  # the bucket of attempts whose duration is not known


def buckets_of(attempts: RolloutAttempts) -> Iterator[tuple[int, int]]:
    """Yield (bucket, count) pairs. Attempts of unknown duration come last, in the bucket UNKNOWN_DURATION."""
    yield from ((bucket_of(span), 1) for span in attempts.durations)
    if attempts.count > len(attempts.durations):
        yield UNKNOWN_DURATION, attempts.count - len(attempts.durations)


def bucket_of(duration: Micros) -> int:
    """Return the bucket of a duration."""
    return int(log2(duration) * BUCKETS_PER_DOUBLING) if duration > 1 else 0


def duration_of(bucket: int) -> Micros:
    """Return the duration that represents a bucket: its middle."""
    return round(2 ** ((bucket + 0.5) / BUCKETS_PER_DOUBLING))


class Tally(Struct):
    """The counts of one version's attempts."""

    outcomes: dict[str, int] = {}
    durations: dict[int, int] = {}  # bucket -> the number of successes

    def add(self, outcome: str, bucket: int, count: int) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count
        if outcome == "success" and bucket != UNKNOWN_DURATION:
            self.durations[bucket] = self.durations.get(bucket, 0) + count

    def count(self, *outcomes: Outcome) -> int:
        return sum(self.outcomes.get(outcome, 0) for outcome in outcomes)

    @property
    def attempts(self) -> int:
        return self.count("success", "failed", "retried")

    @property
    def failure_rate(self) -> float | None:
        """The percentage of attempts that failed, including retried ones; None without attempts."""
        return 100 * self.count("failed", "retried") / self.attempts if self.attempts else None

    def percentile(self, percent: float) -> Micros | None:
        """Return a percentile of the durations of successful attempts, accurate to about 10 %."""
        wanted = sum(self.durations.values()) * percent / 100
        for bucket in sorted(self.durations):
            wanted -= self.durations[bucket]
            if wanted <= 0:
                return duration_of(bucket)
        return None


def judge(plan: RolloutPlan, current: int, tallies: Mapping[int, Tally]) -> str | None:
    """Return the reason to abort a rollout, or None to continue. The current version is not judged."""
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


def candidate_versions(plan: RolloutPlan, current: int) -> Collection[int]:
    """Return the versions other than the current one."""
    return sorted(plan.shares.keys() - {current})
