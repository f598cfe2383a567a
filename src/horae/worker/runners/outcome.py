"""From what a function returned or raised to what is reported."""

from typing import Any

import msgspec

from horae.model.fleet.protocol import MAX_INLINE_RESULT
from horae.worker.code.failure import checked, fate_of, unencodable
from horae.worker.holding import ItemOutcome, StartedItem
from horae.worker.plan import PreparedJob

encode = msgspec.json.Encoder().encode


def encoded(value: Any) -> bytes | ItemOutcome:
    """A return value as JSON, or why it cannot be."""
    if value is None:
        return b"null"
    try:
        result = encode(value)
    except Exception as error:
        return unencodable(error)
    return result if len(result) <= MAX_INLINE_RESULT else checked(result)


def raised(plan: PreparedJob, begun: StartedItem, error: BaseException) -> ItemOutcome:
    """What an exception of a job's function means."""
    retry = plan.entry.retry_function if plan.entry is not None else None
    return fate_of(error, retry, begun[0].grant.failures + 1)
