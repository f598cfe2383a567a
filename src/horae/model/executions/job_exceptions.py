"""What user code raises to say how its attempt ended."""

from collections.abc import Sequence
from datetime import timedelta

from horae.env import Instant, Micros
from horae.model.base.duration import parse_duration

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


class NotDurable(GiveUp):
    """The job must be declared durable to wait without a worker."""


class BadResult(GiveUp):
    """JSON cannot carry the result of a step, or a checkpoint."""


class ResultTooLarge(GiveUp):
    """The result of a step, or a checkpoint, is larger than what is kept."""


class SignalTimeout(GiveUp):
    """No signal came in the time for which `ctx.wait_for` waits. That is remembered, so no further try will help."""


class Suspended(BaseException):
    """Leaves a durable function that waits: it holds no worker meanwhile and begins anew, past what is remembered.

    No Exception, so that code which handles failures lets it pass.
    """

    def __init__(self, wake_at: Instant | None, waits: tuple[str, ...] = ()) -> None:
        super().__init__("the execution waits; let this exception pass")
        self.wake_at = wake_at
        self.waits = waits


def waits_in_group(error: BaseException) -> bool:
    """Whether a task of a group waited: the group ended the others before anybody knew what they wait for."""
    return isinstance(error, BaseExceptionGroup) and error.subgroup(Suspended) is not None


def together(waits: Sequence[Suspended]) -> Suspended:
    """What waits for several things goes on when the first of them is there."""
    times = [one.wake_at for one in waits if one.wake_at is not None]
    return Suspended(min(times, default=None), tuple(step for one in waits for step in one.waits))


def micros_of(span: Span) -> Micros:
    """Read a span as user code may write it."""
    if isinstance(span, timedelta):
        return parse_duration(span.total_seconds(), field="after")
    return parse_duration(span, field="after")
