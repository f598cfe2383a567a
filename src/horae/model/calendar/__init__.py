"""Calendars: when something is open, as values that are read, put together, named and asked.

Pure, no clock. `model.trigger` asks them about fires, the store keeps their versions.
"""

from horae.model.calendar.compiled import Calendar, Opening, all_open
from horae.model.calendar.read import parse_times, render_times
from horae.model.calendar.resolve import (
    Version,
    check_opens,
    check_times,
    no_such_calendar,
    present,
    through_time,
    users_of,
)
from horae.model.calendar.values import Times, references_of
from horae.model.calendar.words import describe_times

__all__ = [
    "Calendar",
    "Opening",
    "Times",
    "Version",
    "all_open",
    "check_opens",
    "check_times",
    "describe_times",
    "no_such_calendar",
    "parse_times",
    "present",
    "references_of",
    "render_times",
    "through_time",
    "users_of",
]
