"""What rules find, and when that is a reason for an alert: pure decisions about what was read."""

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.features.alerts.model.rule import Overlong, RetryRate, SuccessRate


class Finding(Struct, frozen=True, kw_only=True):
    """Something that a rule is about, and that is so now."""

    subject: str
    message: str
    job: UUID | None = None
    execution: UUID | None = None  # an example
    forgotten: bool = False  # it is so no longer, and not because it got well: the message says why


class Counts(Struct, frozen=True):
    """What came of a job's executions within a window."""

    success: int = 0
    failed: int = 0
    retried: int = 0

    @property
    def ended(self) -> int:
        return self.success + self.failed


def low_success(rule: SuccessRate, counts: Counts) -> str | None:
    """What a job's success rate is, if that is too low."""
    if counts.ended < rule.minimum or counts.success * 100 >= rule.share * counts.ended:
        return None
    return f"{counts.failed} of {counts.ended} executions failed; {_percent(counts.success, counts.ended)} succeeded"


def many_retries(rule: RetryRate, counts: Counts) -> str | None:
    """How often a job's executions were tried again, if that is too often."""
    if counts.ended < rule.minimum or counts.retried * 100 <= rule.share * counts.ended:
        return None
    return f"{counts.retried} retries of {counts.ended} executions ({_percent(counts.retried, counts.ended)})"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}".rstrip("0").rstrip(".") + "%"


def too_long(rule: Overlong, ran: Micros, usual: Micros | None) -> bool:
    """Whether an execution runs for longer than it should; what is usual nobody knows of a job that never ended."""
    return usual is not None and ran >= rule.after and ran > rule.times * usual


class Expected(Struct, frozen=True):
    """An execution with a deadline that has not ended: when it began, or can begin, and how long it should take."""

    deadline: Instant
    begins_at: Instant
    lasts: Micros

    def misses(self, margin: Micros, now: Instant) -> Micros | None:
        """By how much it is going to miss its deadline, less the margin; None if it should not."""
        ends_at = max(now, self.begins_at + self.lasts) + margin
        return ends_at - self.deadline if ends_at > self.deadline else None


def is_exact(pattern: str) -> bool:
    """Whether a pattern means one name only."""
    return _literal(pattern) == pattern


def literal_prefix(patterns: Iterable[str]) -> str:
    """How every name begins that one of these patterns may mean."""
    starts = [_literal(pattern) for pattern in patterns]
    first, last = min(starts, default=""), max(starts, default="")
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:shared]


def _literal(pattern: str) -> str:
    return next((pattern[:i] for i, character in enumerate(pattern) if character in "*?["), pattern)
