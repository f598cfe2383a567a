"""The counts of each version's attempts in a rollout, and the decision to abort the rollout."""

from collections.abc import Collection, Iterator, Mapping
from math import log2

from msgspec import Struct

from horae.env import Micros
from horae.model.definitions.rollout import Outcome, RolloutAttempts, RolloutPlan

STEPS = 8  # duration buckets per power of two, so that a bucket is 9 % longer than the one before
UNTIMED = -1  # the bucket of attempts whose duration is not known


def buckets_of(attempts: RolloutAttempts) -> Iterator[tuple[int, int]]:
    """Yield (bucket, count) pairs. Attempts of unknown duration come last, in the bucket UNTIMED."""
    yield from ((bucket_of(span), 1) for span in attempts.spans)
    if attempts.count > len(attempts.spans):
        yield UNTIMED, attempts.count - len(attempts.spans)


def bucket_of(span: Micros) -> int:
    """Return the bucket of a duration."""
    return int(log2(span) * STEPS) if span > 1 else 0


def span_of(bucket: int) -> Micros:
    """Return the duration that represents a bucket: its middle."""
    return round(2 ** ((bucket + 0.5) / STEPS))


class Tally(Struct):
    """The counts of one version's attempts."""

    outcomes: dict[str, int] = {}
    spans: dict[int, int] = {}  # bucket -> the number of successes

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
        """The percentage of attempts that failed, including retried ones; None without attempts."""
        return 100 * self.count("failed", "retried") / self.attempts if self.attempts else None

    def percentile(self, percent: float) -> Micros | None:
        """Return a percentile of the durations of successful attempts, accurate to about 10 %."""
        wanted = sum(self.spans.values()) * percent / 100
        for bucket in sorted(self.spans):
            wanted -= self.spans[bucket]
            if wanted <= 0:
                return span_of(bucket)
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


def others(plan: RolloutPlan, current: int) -> Collection[int]:
    """Return the versions other than the current one."""
    return sorted(plan.shares.keys() - {current})
