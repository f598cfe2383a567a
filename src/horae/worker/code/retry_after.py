"""`Retry-After`: the time after which a server that answered with a failure accepts another request."""

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from horae.env import SECOND, Micros
from horae.model.base.duration import DAY
from horae.model.executions.job_exceptions import micros_of

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
