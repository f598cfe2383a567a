"""The limit of a queue: how many run at once, how often they start, and in what order."""

from collections.abc import Mapping
from typing import Any

from horae.errors import BadInput
from horae.model.admission.limits import LIMIT, Limit
from horae.model.fields.values import kind_of

OF_QUEUES = (*LIMIT.names, "sequence")


def read_limit(given: Mapping[str, Any]) -> Limit:
    """Read the limit of a queue; it may run as a `sequence`."""
    limit = LIMIT.read(given)
    ordered = given.get("sequence", False)
    if not isinstance(ordered, bool):
        raise BadInput(f"sequence is {kind_of(ordered)}.", "It is true or false.", field="sequence")
    at_once = limit.get("concurrency")
    if ordered and at_once is not None and at_once > 1:
        raise BadInput(
            f"A queue that is a sequence runs one execution at a time, not {at_once}.",
            "Leave concurrency out, or sequence.",
            field="concurrency",
        )
    return Limit(**limit, sequence=ordered)
