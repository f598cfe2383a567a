"""Calendars as the API shows them."""

from typing import Annotated, Any

from msgspec import Meta, field

from horae.model.base.view import Time, Versioned, View


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
