"""Alerts: rules that say what operators want to hear of, and what is found by them.

One alert is open per rule and subject. `features.alerts.engine` makes findings of what it reads; `alert_course` decides
whether a finding opens an alert, reminds of one or changes nothing.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import SECOND, Instant, Micros
from horae.model.admission.rate import Rate
from horae.model.base.duration import HOUR, MINUTE

Kind = Literal[
    "success-rate",
    "failures-in-a-row",
    "retry-rate",
    "overlong",
    "late-worker",
    "lag",
    "queue-age",
    "missing-success",
    "deadline-risk",
    "worker-lost",
    "circuit-open",
]
Subject = Literal["job", "queue", "worker"]
Severity = Literal["info", "warning", "critical"]
RuleState = Literal["active", "paused"]
AlertState = Literal["firing", "recovered"]
NoticeKind = Literal["firing", "reminder", "recovered", "forgotten", "test"]
NoticeState = Literal["pending", "delivered", "failed"]
ChannelKind = Literal["webhook", "email", "apprise"]
USUAL_RATE = Rate(20, HOUR, 20)


class Rule(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What an operator wants to hear of; which of the last fields mean something says the table `KINDS`."""

    kind: Kind
    subjects: tuple[str, ...] = ("*",)  # names, or patterns with * and ?
    channels: tuple[str, ...] = ()
    severity: Severity = "warning"
    description: str = ""
    repeat_every: Micros | None = None  # while it goes on and nobody acknowledged it
    at_most: Rate = USUAL_RATE  # notices of new alerts and reminders
    recovery: bool = True  # tell when it is over
    share: int = 0  # per cent
    window: Micros = 0
    minimum: int = 0  # executions within the window, before a share of them means anything
    count: int = 0
    times: float = 0.0
    after: Micros = 0

    def covers(self, name: str) -> bool:
        """Whether a subject is one of those that the rule is about."""
        return any(fnmatchcase(name, pattern) for pattern in self.subjects)


class Part(Struct, frozen=True):
    """A parameter of a kind of rule: which field of `Rule` it is, in what spelling, and what it is unless given."""

    field: Literal["share", "window", "minimum", "count", "times", "after"]
    usual: str | int | float
    least: float
    most: float


class About(Struct, frozen=True):
    """A kind of rule: what its alerts are about, and what it may be told."""

    subject: Subject
    parts: Mapping[str, Part]


def _span(usual: str, least: Micros = SECOND, most: Micros = 24 * HOUR) -> Part:
    return Part("after", usual, least, most)


_WINDOW = Part("window", "1h", MINUTE, 24 * HOUR)
_MINIMUM = Part("minimum", 10, 1, 1_000_000)
MOST_IN_A_ROW = 1000
LONGEST = 365 * 24 * HOUR

KINDS: Mapping[Kind, About] = {
    "success-rate": About("job", {"below": Part("share", "95%", 1, 100), "window": _WINDOW, "minimum": _MINIMUM}),
    "failures-in-a-row": About("job", {"count": Part("count", 3, 1, MOST_IN_A_ROW)}),
    "retry-rate": About("job", {"above": Part("share", "20%", 0, 99), "window": _WINDOW, "minimum": _MINIMUM}),
    "overlong": About("job", {"times": Part("times", 3, 1.1, 1000), "atLeast": _span("1m")}),
    "late-worker": About("worker", {"after": _span("10s")}),
    "lag": About("job", {"after": _span("1m")}),
    "queue-age": About("queue", {"after": _span("10m", most=LONGEST)}),
    "missing-success": About("job", {"since": _span("1d", MINUTE, LONGEST)}),
    "deadline-risk": About("job", {"margin": _span("0s", 0)}),
    "worker-lost": About("worker", {"within": _span("1h", MINUTE)}),
    "circuit-open": About("job", {}),
}


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


def low_success(rule: Rule, counts: Counts) -> str | None:
    """What a job's success rate is, if that is too low."""
    if counts.ended < rule.minimum or counts.success * 100 >= rule.share * counts.ended:
        return None
    return f"{counts.failed} of {counts.ended} executions failed; {_percent(counts.success, counts.ended)} succeeded"


def many_retries(rule: Rule, counts: Counts) -> str | None:
    """How often a job's executions were tried again, if that is too often."""
    if counts.ended < rule.minimum or counts.retried * 100 <= rule.share * counts.ended:
        return None
    return f"{counts.retried} retries of {counts.ended} executions ({_percent(counts.retried, counts.ended)})"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}".rstrip("0").rstrip(".") + "%"


def too_long(rule: Rule, ran: Micros, usual: Micros | None) -> bool:
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
