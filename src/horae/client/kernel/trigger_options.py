"""Keywords of triggers. `python -m tools.sdk` writes this module from their tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from horae.model.executions.job_exceptions import Span

TriggerKind = Literal["cron", "interval", "once", "event", "webhook", "watch"]


class TriggerRules(TypedDict, total=False):
    """The options of every kind of trigger."""

    start_at: datetime | str | None
    """Nothing fires before this."""
    end_at: datetime | str | None
    """Nothing fires from this on."""
    max_fires: int | None
    """How often it fires at most; only fires that ran count."""
    jitter: Span | None
    """Move each fire by chance, up to so much."""
    spread: Span | None
    """Give it a fixed place in so long a window after each instant."""
    misfire: str | Mapping[str, Any] | None
    """Which of missed fires run: none, the newest, all, the newest so many, or those of a window."""
    overlap: str | Mapping[str, Any] | None
    """What a fire does while the last execution runs; skip unless it says, allow for events."""
    grace: Span | None
    """A fire decided within this is late, not missed."""
    within: Span | None
    """The deadline of its executions, as a span from the nominal instant; the job's unless it says."""
    calendar: str | None
    """Only when this calendar is open."""
    calendars: Sequence[str] | None
    """Only when all of these calendars are open."""
    outside: Literal["skip", "postpone", "advance"] | None
    """What becomes of a fire while a calendar is closed."""
    name: str | None
    """Its name among the job's triggers; its kind unless it says."""
    params: Mapping[str, Any] | None
    """Params over those of the job, with templates."""
    paused: bool | None
    """Whether it begins paused."""


class CronOptions(TriggerRules, total=False):
    """Fires when the local time in a zone matches an expression."""

    dialect: Literal["unix", "quartz"] | None
    """How cron fields are read."""
    dst_gap: Literal["shift", "skip"] | None
    """What becomes of a time that a clock change jumps over."""
    dst_overlap: Literal["first", "second", "both"] | None
    """Which of a time that comes twice."""


class IntervalOptions(TriggerRules, total=False):
    """Fires at every multiple of a length, counted in both directions from the anchor or from its creation."""

    anchor: datetime | str | None
    """An instant from which `every` counts; otherwise when it was made."""


class TriggerFields(TypedDict, total=False):
    """The fields of a trigger; None resets a field to its default."""

    cron: str | None
    """Fire when the clock on the wall matches these five cron fields."""
    timezone: str | None
    """The time zone whose clock is meant."""
    dialect: Literal["unix", "quartz"] | None
    """How cron fields are read."""
    dst_gap: Literal["shift", "skip"] | None
    """What becomes of a time that a clock change jumps over."""
    dst_overlap: Literal["first", "second", "both"] | None
    """Which of a time that comes twice."""
    every: Span | None
    """Fire again and again after so long."""
    anchor: datetime | str | None
    """An instant from which `every` counts; otherwise when it was made."""
    at: datetime | str | None
    """Fire once, at this instant."""
    event: str | None
    """Fire when an event of this name comes."""
    filter: str | None
    """Fire only if this is true of the event."""
    webhook: bool | Mapping[str, Any] | None
    """Fire when a URL of its own is called, signed unless it says otherwise."""
    watch: str | None
    """Fire for each new object in a folder or under an object store's prefix."""
    interval: Span | None
    """How often a watched place is looked at."""
    existing: Literal["ignore", "fire"] | None
    """What becomes of objects that are there when a watch begins."""
    settle: Span | None
    """How long a watched object must have been as it is; 2s in folders unless it says."""
    start_at: datetime | str | None
    """Nothing fires before this."""
    end_at: datetime | str | None
    """Nothing fires from this on."""
    max_fires: int | None
    """How often it fires at most; only fires that ran count."""
    jitter: Span | None
    """Move each fire by chance, up to so much."""
    spread: Span | None
    """Give it a fixed place in so long a window after each instant."""
    misfire: str | Mapping[str, Any] | None
    """Which of missed fires run: none, the newest, all, the newest so many, or those of a window."""
    overlap: str | Mapping[str, Any] | None
    """What a fire does while the last execution runs; skip unless it says, allow for events."""
    grace: Span | None
    """A fire decided within this is late, not missed."""
    within: Span | None
    """The deadline of its executions, as a span from the nominal instant; the job's unless it says."""
    calendar: str | None
    """Only when this calendar is open."""
    calendars: Sequence[str] | None
    """Only when all of these calendars are open."""
    outside: Literal["skip", "postpone", "advance"] | None
    """What becomes of a fire while a calendar is closed."""
    params: Mapping[str, Any] | None
    """Params over those of the job, with templates."""
    paused: bool | None
    """Whether it begins paused."""
