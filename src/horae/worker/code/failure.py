"""Conversion of exceptions to the failures that are reported to the server."""

import traceback
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any

from horae import worker
from horae.env import SECOND, Micros
from horae.model.base.duration import DAY
from horae.model.definitions.function_signature import BadParams
from horae.model.executions.job_exceptions import Cancelled, GiveUp, Retry, Suspended, micros_of, waits_in_group
from horae.model.executions.output.artifact import MAX_RESULT_FILE
from horae.model.fleet.protocol import MAX_INLINE_RESULT, ReportedFailure, ReportedKind
from horae.worker.holding import CANCELLED, RELEASED, ItemOutcome

MAX_TRACEBACK = 16 * 1024
MAX_MESSAGE = 4 * 1024
MOST_NAMES = 16  # reported for an error: the names of its class and its base classes
_OURS = worker.__path__[0]

# A job's own retry rule. Called with (failures, error), it returns the time to wait before the next attempt, False to
# give up, or None for the delay of the retry policy.
RetryFunction = Callable[[int, BaseException], Any]


def clean(text: str) -> str:
    """Return a text that every store and protocol can carry: no lone surrogates, no NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def failed(
    name: str,
    message: str,
    *,
    permanent: bool = False,
    exit_code: int | None = None,
    kind: ReportedKind = "error",
) -> ItemOutcome:
    """Return the outcome of a failure that the worker itself detected; `name` is its error type."""
    error = ReportedFailure(type=name, message=shorten(clean(message), MAX_MESSAGE), permanent=permanent, kind=kind)
    return ItemOutcome(outcome="failed", error=error, exit_code=exit_code)


def outcome_of(error: BaseException, retry: RetryFunction | None, failures: int) -> ItemOutcome:
    """Return the outcome of an exception in the job's code.

    `retry` is the job's own retry rule, and `failures` the number of failures including this one.
    """
    if isinstance(error, Suspended):
        return ItemOutcome(outcome="suspended", wake_at=error.wake_at, waits=error.waits)
    if waits_in_group(error):
        message = "a task of a TaskGroup was suspended; run concurrent parts that sleep or wait by ctx.gather"
        return failed("NotDurable", message, permanent=True)
    if isinstance(error, Cancelled):
        return CANCELLED
    if isinstance(error, BadParams):
        return failed("BadParams", str(error), permanent=True)
    reported, after, gives_up = _judged(error, retry, failures)
    status, delay = status_and_delay(reported)
    return ItemOutcome(
        outcome="failed",
        error=ReportedFailure(
            type=type(reported).__name__,
            message=shorten(clean(_message(reported)), MAX_MESSAGE),
            traceback=format_traceback(reported),
            permanent=gives_up,
            retry_after=delay if after is None else after,
            names=names_of(type(reported)),
            status=status,
        ),
    )


def names_of(kind: type[BaseException]) -> tuple[str, ...]:
    """Return the names of an error's class and its base classes, which retry rules refer to.

    A name includes the module, except for Python's builtin classes.
    """
    parents = kind.__mro__[: kind.__mro__.index(BaseException)][:MOST_NAMES]
    return tuple(
        clean(c.__qualname__ if c.__module__ == "builtins" else f"{c.__module__}.{c.__qualname__}")[:256]
        for c in parents
    )


def _judged(
    error: BaseException, retry: RetryFunction | None, failures: int
) -> tuple[BaseException, Micros | None, bool]:
    """Return the error to report, the delay that the job requests before its next attempt, and whether it gives up.

    The job's own retry rule is called for every error except `Retry` and `GiveUp`. If the rule raises one of these, it
    counts as if the job had raised it. Any other exception in the rule is reported instead of the error.
    """
    if isinstance(error, Retry):
        return error, error.after, False
    if isinstance(error, GiveUp) or retry is None:
        return error, None, isinstance(error, GiveUp)
    try:
        wish = retry(failures, error)
        if wish is None or isinstance(wish, bool):
            return error, None, wish is False
        return error, micros_of(wish), False
    except (Retry, GiveUp) as raised:
        return _judged(raised, None, failures)
    except Exception as broken:
        return broken, None, False


def outcome_after_stop(kind: str, outcome: bytes | ItemOutcome, *, once: bool) -> bytes | ItemOutcome:
    """Return the outcome to report for an interrupted item. `outcome` is the way in which the item itself ended.

    A result counts in spite of the interruption, except after a timeout. An item that was neither cancelled nor timed
    out, but preempted or stopped with its worker, is released to run again, unless it has suspended itself. With
    `once`, the job may start only once, so the item fails instead.
    """
    if kind in TIMED_OUT:
        return TIMED_OUT[kind]
    if isinstance(outcome, bytes) or outcome.outcome == "success":
        return outcome
    if kind == "cancel":
        return CANCELLED
    if outcome.outcome == "suspended":
        return outcome
    if once:
        return failed("Interrupted", f"stopped ({kind}) and not repeated: the job is at-most-once", permanent=True)
    return RELEASED


def checked_result(result: bytes) -> bytes | ItemOutcome:
    """Return an encoded result as bytes if a report can carry it, otherwise as an outcome, which is sent as a file.

    Return a failure if the result is too large for a file, too.
    """
    if len(result) <= MAX_INLINE_RESULT:
        return result
    if len(result) <= MAX_RESULT_FILE:
        return ItemOutcome(outcome="success", result=result)
    message = f"the result has {len(result)} bytes and {MAX_RESULT_FILE} are allowed; store it and return a reference"
    return failed("ResultTooLarge", message, permanent=True)


def encoding_failure(error: BaseException) -> ItemOutcome:
    """Return the failure of a function whose return value cannot be encoded as JSON."""
    return failed("BadResult", f"the return value cannot be stored as JSON: {_message(error)}", permanent=True)


def format_traceback(error: BaseException, *, whole: bool = False) -> str:
    """Return the traceback of an error, shortened in the middle if it is long.

    Frames of the worker at its beginning are left out, unless `whole` is true.
    """
    frames = error.__traceback__
    while frames is not None and _is_ours(frames) and not whole:
        frames = frames.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, frames))
    except Exception as broken:
        text = f"{type(error).__name__} (its traceback cannot be shown: {type(broken).__name__})"
    return shorten(clean(text), MAX_TRACEBACK)


def shorten(text: str, limit: int) -> str:
    """Shorten a text to `limit` characters. Its beginning, a quarter of the limit, and its end are kept."""
    if len(text) <= limit:
        return text
    head = limit // 4
    note = f"\n... {len(text) - limit} characters left out ...\n"
    return text[:head] + note + text[len(text) - (limit - head - len(note)) :]


def _is_ours(frame: TracebackType) -> bool:
    return frame.tb_frame.f_code.co_filename.startswith(_OURS)


def _message(error: BaseException) -> str:
    """Return the message of an exception. The class is added to a KeyError, since its message is only the key."""
    try:
        if isinstance(error, KeyError) and error.args:
            return f"{type(error).__name__}: {error}"
        return str(error) or type(error).__name__
    except Exception:
        return f"{type(error).__name__} (its message cannot be shown)"


# Outcomes of items that ran out of time, by the kind of interruption.
TIMED_OUT = {
    "timeout": failed("RunTimeout", "the attempt took longer than the job's timeout", kind="timeout"),
    "heartbeat": failed("HeartbeatTimeout", "the attempt sent no heartbeat within timeouts.heartbeat", kind="timeout"),
    "total": failed("TotalTimeout", "all attempts together took longer than timeouts.total", kind="timeout"),
    "start": failed("StartTimeout", "the worker did not start the execution in time", kind="timeout"),
}


LONGEST: Micros = 7 * DAY  # longer delays are shortened to this
_STATUSES = range(100, 600)


def retry_after(headers: Mapping[str, str]) -> Micros | None:
    """Return the delay that the headers of an answer request, if any.

    `Retry-After` has a number of seconds, or a date; the delay is the time from the answer's own `Date` to this date.
    """
    value = headers.get("retry-after", "").strip()
    if value.isdecimal() and len(value) < 12:
        return min(LONGEST, int(value) * SECOND)
    at, now = _date(value), _date(headers.get("date", ""))
    if at is None or now is None:
        return None
    return min(LONGEST, max(0, int((at - now).total_seconds() * SECOND)))


def _date(value: str) -> datetime | None:
    """Parse the date of a header; a date without a zone cannot be compared."""
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError):
        return None
    return at if at.tzinfo is not None else None


def status_and_delay(error: BaseException) -> tuple[int | None, Micros | None]:
    """Return the HTTP status and the retry delay that an exception of the job's code carries; either may be None.

    The exceptions of HTTP libraries have the answer as `response`. A `retry_after` of the exception itself, in any form
    of a span, has precedence over the header of the answer. Attributes of an unexpected form are ignored, because the
    failure must be reported in any case.
    """
    try:
        wish = getattr(error, "retry_after", None)
        after = None if wish is None or isinstance(wish, bool) else min(LONGEST, max(0, micros_of(wish)))
    except Exception:
        after = None
    try:
        response: Any = getattr(error, "response", None)
        status = getattr(response, "status_code", None)
        if not isinstance(status, int) or status not in _STATUSES:
            return None, after
        return status, retry_after(response.headers) if after is None else after
    except Exception:
        return None, after
