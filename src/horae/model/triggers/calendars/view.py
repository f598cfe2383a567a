"""Calendars as the API shows them, and their descriptions in plain English."""

from typing import Annotated, Any, assert_never

from msgspec import Meta, field

from horae.model.base.view import Time, Versioned, View
from horae.model.triggers.calendars.dates import render_day
from horae.model.triggers.calendars.hours import render_hours
from horae.model.triggers.calendars.values import (
    Business,
    Dates,
    Exclusion,
    Hours,
    Intersection,
    Reference,
    Times,
    Union,
    Windows,
)


class CalendarUse(View, frozen=True, kw_only=True, omit_defaults=True):
    """A trigger of a job, another calendar, or a window of a queue (`*` for all queues) that uses a calendar."""

    job: str = ""
    trigger: str = ""
    calendar: str = ""
    queue: str = ""


class CalendarView(View, Versioned, frozen=True, kw_only=True):
    """A calendar: its definition, its description in words, and its current state.

    `validTo` is null for the current version.
    """

    name: str
    version: int
    description: str
    definition: dict[str, Any]
    text: str
    open: Annotated[bool | None, Meta(description="Whether it is open now; null if that is unknown.")]
    opens_at: Annotated[Time | None, Meta(description="When it opens next; null while it is open, or if never.")]
    closes_at: Annotated[Time | None, Meta(description="When it closes; null while it is closed, or if never.")]
    created_at: Time
    valid_from: Time
    valid_to: Time | None = None
    used_by: list[CalendarUse] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class OpeningView(View, frozen=True, kw_only=True):
    """An open time: from the instant `from` to before the instant `to`; null if it has no beginning or no end."""

    from_: Time | None = field(name="from")
    to: Time | None


_MOST_NAMED = 3


def describe_times(times: Times) -> str:
    """Describe times in one short phrase; long lists are given as a count."""
    if isinstance(times, Business):
        place = times.exchange or "-".join(part for part in (times.country, times.subdivision) if part)
        return f"business days of {place}, {times.timezone} time"
    if isinstance(times, Dates):
        days = [*map(render_day, times.periods), *map(render_day, times.yearly)]
        return f"{_some(days, 'dates')}, {times.timezone} time"
    if isinstance(times, Hours):
        return f"{_some([render_hours(each) for each in times.weekly], 'weekly hours')}, {times.timezone} time"
    if isinstance(times, Windows):
        count = len(times.windows)
        return "1 window" if count == 1 else f"{count} windows"
    if isinstance(times, Reference):
        return f'"{times.name}"'
    if isinstance(times, Exclusion):
        return f"{_inner(times.base)} except {' and '.join(_inner(each) for each in times.without)}"
    if isinstance(times, Union | Intersection):
        word = " or " if isinstance(times, Union) else " and "
        return word.join(_inner(member) for member in times.members)
    assert_never(times)


def _inner(times: Times) -> str:
    text = describe_times(times)
    return f"({text})" if isinstance(times, Union | Intersection | Exclusion) else text


def _some(entries: list[str], noun: str) -> str:
    return ", ".join(entries) if len(entries) <= _MOST_NAMED else f"{len(entries)} {noun}"
