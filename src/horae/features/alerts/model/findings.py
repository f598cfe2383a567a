"""Findings of alert rules: pure functions that decide whether the condition of a rule holds."""

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from horae.env import Instant, Micros
from horae.features.alerts.model.rule import Overlong, RetryRate, SuccessRate


class RuleFinding(Struct, frozen=True, kw_only=True):
    """A job, queue or worker (the subject) for which the condition of a rule holds now."""

    subject: str  # its name
    message: str
    job: UUID | None = None
    execution: UUID | None = None  # an example of the problem
    forgotten: bool = False  # the alert shall end although the subject did not recover; the message has the reason


class JobOutcomes(Struct, frozen=True):
    """The outcomes of a job's executions within a window."""

    success: int = 0
    failed: int = 0
    retried: int = 0

    @property
    def ended(self) -> int:
        return self.success + self.failed


def low_success(rule: SuccessRate, counts: JobOutcomes) -> str | None:
    """Return a message with the share of successes among a job's executions if it is too low, otherwise None."""
    if counts.ended < rule.minimum or counts.success * 100 >= rule.share * counts.ended:
        return None
    return f"{counts.failed} of {counts.ended} executions failed; {_percent(counts.success, counts.ended)} succeeded"


def many_retries(rule: RetryRate, counts: JobOutcomes) -> str | None:
    """Return a message with the ratio of retries to a job's executions if it is too high, otherwise None."""
    if counts.ended < rule.minimum or counts.retried * 100 <= rule.share * counts.ended:
        return None
    return f"{counts.retried} retries of {counts.ended} executions ({_percent(counts.retried, counts.ended)})"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}".rstrip("0").rstrip(".") + "%"


def is_too_long(rule: Overlong, ran: Micros, usual: Micros) -> bool:
    """Return whether an execution has run for too long.

    `ran` is how long it has run, `usual` the usual duration of the job's executions.
    """
    return ran >= rule.after and ran > rule.times * usual


class ExpectedRun(Struct, frozen=True):
    """The estimated run of an unfinished execution with a deadline."""

    deadline: Instant
    begins_at: Instant  # its start, or the earliest possible start
    lasts: Micros  # the usual duration

    def overrun(self, margin: Micros, now: Instant) -> Micros | None:
        """Return by how much the estimated end plus the margin exceeds the deadline; None if it does not."""
        ends_at = max(now, self.begins_at + self.lasts) + margin
        return ends_at - self.deadline if ends_at > self.deadline else None


def is_exact(pattern: str) -> bool:
    """Return whether a pattern has no wildcards, so that it matches only one name."""
    return _literal(pattern) == pattern


def literal_prefix(patterns: Iterable[str]) -> str:
    """Return the longest prefix that is common to all names that the patterns may match."""
    starts = [_literal(pattern) for pattern in patterns]
    first, last = min(starts, default=""), max(starts, default="")
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:shared]


def _literal(pattern: str) -> str:
    return next((pattern[:i] for i, character in enumerate(pattern) if character in "*?["), pattern)
