"""Keywords of triggers. `python -m tools.sdk` writes this module from their tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from horae.model.executions.job_exceptions import Span

TriggerKind = Literal["cron", "interval", "once", "event", "webhook", "watch"]


class TriggerRules(TypedDict, total=False):
    """The options of every kind of trigger."""

    start_at: datetime | str | None
    """No fire before this instant."""
    end_at: datetime | str | None
    """No fire at or after this instant."""
    max_fires: int | None
    """The maximum number of fires; only fires that ran count."""
    jitter: Span | None
    """Delay each fire by a random amount, up to this."""
    spread: Span | None
    """Fire at a fixed place in a window of this length after each instant."""
    misfire: str | Mapping[str, Any] | None
    """The missed fires that run: none, the newest, all, the newest N, or those within a span."""
    overlap: str | Mapping[str, Any] | None
    """The policy for a fire while the last execution runs; skip by default, allow for events."""
    grace: Span | None
    """A fire that is decided within this time after its instant is late, not missed."""
    within: Span | None
    """The deadline of its executions, as a span from the nominal instant; by default, the job's deadline."""
    calendar: str | None
    """Only when this calendar is open."""
    calendars: Sequence[str] | None
    """Only when all of these calendars are open."""
    outside: Literal["skip", "postpone", "advance"] | None
    """The policy for a fire while a calendar is closed."""
    name: str | None
    """Its name among the job's triggers; its kind by default."""
    params: Mapping[str, Any] | None
    """Params that override those of the job, with templates."""
    paused: bool | None
    """Whether it begins paused."""


class CronOptions(TriggerRules, total=False):
    """Fires when the local time in a zone matches an expression."""

    dialect: Literal["unix", "quartz"] | None
    """The dialect of the cron fields."""
    dst_gap: Literal["shift", "skip"] | None
    """The policy for a time that a clock change skips."""
    dst_overlap: Literal["first", "second", "both"] | None
    """The policy for a time that occurs twice."""


class IntervalOptions(TriggerRules, total=False):
    """Fires once per interval `every`, counted in both directions from `anchor`, or else from its creation."""

    anchor: datetime | str | None
    """The instant from which `every` counts; its creation by default."""


class TriggerFields(TypedDict, total=False):
    """The fields of a trigger; None resets a field to its default."""

    cron: str | None
    """Fire when the local time matches these five cron fields."""
    timezone: str | None
    """The time zone of the cron fields."""
    dialect: Literal["unix", "quartz"] | None
    """The dialect of the cron fields."""
    dst_gap: Literal["shift", "skip"] | None
    """The policy for a time that a clock change skips."""
    dst_overlap: Literal["first", "second", "both"] | None
    """The policy for a time that occurs twice."""
    every: Span | None
    """Fire repeatedly at this interval."""
    anchor: datetime | str | None
    """The instant from which `every` counts; its creation by default."""
    at: datetime | str | None
    """Fire once, at this instant."""
    event: str | None
    """Fire when an event with this name arrives."""
    filter: str | None
    """Fire only if this condition holds for the event."""
    webhook: bool | Mapping[str, Any] | None
    """Fire when its own URL is called; calls must be signed by default."""
    watch: str | None
    """Fire for each new object in a folder or under an object store's prefix."""
    interval: Span | None
    """The interval between two checks of a watched place."""
    existing: Literal["ignore", "fire"] | None
    """The policy for objects that exist when a watch begins."""
    settle: Span | None
    """How long a watched object must be unchanged; 2s in folders by default."""
    start_at: datetime | str | None
    """No fire before this instant."""
    end_at: datetime | str | None
    """No fire at or after this instant."""
    max_fires: int | None
    """The maximum number of fires; only fires that ran count."""
    jitter: Span | None
    """Delay each fire by a random amount, up to this."""
    spread: Span | None
    """Fire at a fixed place in a window of this length after each instant."""
    misfire: str | Mapping[str, Any] | None
    """The missed fires that run: none, the newest, all, the newest N, or those within a span."""
    overlap: str | Mapping[str, Any] | None
    """The policy for a fire while the last execution runs; skip by default, allow for events."""
    grace: Span | None
    """A fire that is decided within this time after its instant is late, not missed."""
    within: Span | None
    """The deadline of its executions, as a span from the nominal instant; by default, the job's deadline."""
    calendar: str | None
    """Only when this calendar is open."""
    calendars: Sequence[str] | None
    """Only when all of these calendars are open."""
    outside: Literal["skip", "postpone", "advance"] | None
    """The policy for a fire while a calendar is closed."""
    params: Mapping[str, Any] | None
    """Params that override those of the job, with templates."""
    paused: bool | None
    """Whether it begins paused."""
