"""Exceptions that user code raises to end its attempt."""

from collections.abc import Sequence
from datetime import timedelta

from horae.env import Instant, Micros
from horae.model.base.duration import parse_duration

Span = str | int | float | timedelta  # "10m", seconds, or a timedelta


class Retry(Exception):
    """Try this execution again, after the given span or the policy's own delay. It counts as a failure."""

    def __init__(self, message: str = "", *, after: Span | None = None) -> None:
        super().__init__(message or "the job requested a retry")
        self.after = None if after is None else micros_of(after)


class GiveUp(Exception):
    """Do not retry: the execution fails at once."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or "the job gave up")


class Cancelled(Exception):
    """The execution was asked to stop, and stopped."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or "the execution was cancelled")


class NotDurable(GiveUp):
    """The job must be declared durable to wait without a worker."""


class BadResult(GiveUp):
    """The result of a step, or a checkpoint, cannot be encoded as JSON."""


class ResultTooLarge(GiveUp):
    """The result of a step, or a checkpoint, exceeds the limit of the store."""


class SignalTimeout(GiveUp):
    """No signal arrived in the time for which `ctx.wait_for` waits.

    The timeout is stored, so retries would not help.
    """


class Suspended(BaseException):
    """Leave a durable function that waits.

    The execution holds no worker meanwhile. Later the function starts again, with the stored results of its steps. This
    is a BaseException, so that `except Exception` in user code does not catch it.
    """

    def __init__(self, wake_at: Instant | None, waits: tuple[str, ...] = ()) -> None:
        super().__init__("the execution waits; let this exception pass")
        self.wake_at = wake_at
        self.waits = waits


def waits_in_group(error: BaseException) -> bool:
    """Return whether a task of a task group was suspended.

    The group has then cancelled the other tasks before their waits were known.
    """
    return isinstance(error, BaseExceptionGroup) and error.subgroup(Suspended) is not None


def combine_waits(waits: Sequence[Suspended]) -> Suspended:
    """Combine the waits of several tasks into one: the execution continues when the first of them is over."""
    times = [one.wake_at for one in waits if one.wake_at is not None]
    return Suspended(min(times, default=None), tuple(step for one in waits for step in one.waits))


def micros_of(span: Span) -> Micros:
    """Read a duration from user code."""
    if isinstance(span, timedelta):
        return parse_duration(span.total_seconds(), field="after")
    return parse_duration(span, field="after")
