"""What user code raises to say how its attempt ended."""

from datetime import timedelta

from horae.env import Micros
from horae.model.duration import parse_duration

Span = str | int | float | timedelta  # "10m", seconds, or a timedelta


class Retry(Exception):
    """Try this execution again, after the given span or the policy's own delay. It counts as a failure."""

    def __init__(self, message: str = "", *, after: Span | None = None) -> None:
        super().__init__(message or "the job asked for another try")
        self.after = None if after is None else micros_of(after)


class GiveUp(Exception):
    """No further try will help: the execution ends as failed at once."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or "the job gave up")


class Cancelled(Exception):
    """The execution was asked to stop, and stopped."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or "the execution was cancelled")


def micros_of(span: Span) -> Micros:
    """Read a span as user code may write it."""
    if isinstance(span, timedelta):
        return parse_duration(span.total_seconds(), field="after")
    return parse_duration(span, field="after")
