"""Conversion of a function's return value or exception to the reported outcome."""

from typing import Any

import msgspec

from horae.model.fleet.protocol import MAX_INLINE_RESULT
from horae.worker.code.failure import checked_result, encoding_failure, outcome_of
from horae.worker.holding import ItemOutcome, StartedItem
from horae.worker.plan import PreparedJob

encode = msgspec.json.Encoder().encode


def encoded(value: Any) -> bytes | ItemOutcome:
    """Return a value as JSON, or the failure to encode it."""
    if value is None:
        return b"null"
    try:
        result = encode(value)
    except Exception as error:
        return encoding_failure(error)
    return result if len(result) <= MAX_INLINE_RESULT else checked_result(result)


def exception_outcome(plan: PreparedJob, begun: StartedItem, error: BaseException) -> ItemOutcome:
    """Return the outcome of an exception in a job's function."""
    retry = plan.entry.retry_function if plan.entry is not None else None
    return outcome_of(error, retry, begun[0].grant.failures + 1)
