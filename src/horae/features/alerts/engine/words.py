"""How findings put things for people."""

from horae.env import SECOND, Micros
from horae.model.base.duration import format_duration


def span(micros: Micros) -> str:
    """Whole seconds, if there are any."""
    return format_duration(micros if micros < SECOND else micros // SECOND * SECOND)
