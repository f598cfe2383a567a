"""The formatting of durations in messages."""

from horae.env import SECOND, Micros
from horae.model.base.duration import format_duration


def duration_text(micros: Micros) -> str:
    """Format a duration in whole seconds; a duration under one second is exact."""
    return format_duration(micros if micros < SECOND else micros // SECOND * SECOND)
