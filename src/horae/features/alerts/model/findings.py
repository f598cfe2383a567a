"""Findings of alert rules: pure decisions about the data that an evaluation has read."""

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.features.alerts.model.rule import Overlong, RetryRate, SuccessRate


class RuleFinding(Struct, frozen=True, kw_only=True):
    """One subject for which the condition of a rule holds now."""

    subject: str
    message: str
    job: UUID | None = None
    execution: UUID | None = None  # an example
    forgotten: bool = False  # the alert ends although the subject did not recover: the message has the reason


class JobOutcomes(Struct, frozen=True):
    """The outcomes of a job's executions within a window."""

    success: int = 0
    failed: int = 0
    retried: int = 0

    @property
    def ended(self) -> int:
        return self.success + self.failed


def low_success(rule: SuccessRate, counts: JobOutcomes) -> str | None:
    """Return a message with a job's success rate if it is too low, otherwise None."""
    if counts.ended < rule.minimum or counts.success * 100 >= rule.share * counts.ended:
        return None
    return f"{counts.failed} of {counts.ended} executions failed; {_percent(counts.success, counts.ended)} succeeded"


def many_retries(rule: RetryRate, counts: JobOutcomes) -> str | None:
    """Return a message with a job's retry rate if it is too high, otherwise None."""
    if counts.ended < rule.minimum or counts.retried * 100 <= rule.share * counts.ended:
        return None
    return f"{counts.retried} retries of {counts.ended} executions ({_percent(counts.retried, counts.ended)})"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}".rstrip("0").rstrip(".") + "%"


def is_too_long(rule: Overlong, ran: Micros, usual: Micros | None) -> bool:
    """Return whether an execution has run for too long. `usual` is None for a job without a completed execution."""
    return usual is not None and ran >= rule.after and ran > rule.times * usual


class ExpectedRun(Struct, frozen=True):
    """The estimated run of an unfinished execution with a deadline: its (earliest) begin and its usual duration."""

    deadline: Instant
    begins_at: Instant
    lasts: Micros

    def overrun(self, margin: Micros, now: Instant) -> Micros | None:
        """Return how far the estimated end plus the margin is after the deadline, or None if it is not."""
        ends_at = max(now, self.begins_at + self.lasts) + margin
        return ends_at - self.deadline if ends_at > self.deadline else None


def is_exact(pattern: str) -> bool:
    """Return whether a pattern matches one name only."""
    return _literal(pattern) == pattern


def literal_prefix(patterns: Iterable[str]) -> str:
    """Return the longest prefix of all names that these patterns may match."""
    starts = [_literal(pattern) for pattern in patterns]
    first, last = min(starts, default=""), max(starts, default="")
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:shared]


def _literal(pattern: str) -> str:
    return next((pattern[:i] for i, character in enumerate(pattern) if character in "*?["), pattern)
