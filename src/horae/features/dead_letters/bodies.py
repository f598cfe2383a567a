"""The bodies of requests about dead letters: filters, and changes of the params for a retry."""

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from horae.features.dead_letters.model.replay import LETTER_FILTER
from horae.model.fields.derived import decoded
from horae.server.reading.bodies import RequestBody

if TYPE_CHECKING:  # type checkers need a class; at runtime its fields are generated from the table

    class DeadLetterSelection(RequestBody, frozen=True, kw_only=True):
        job: str | None = None
else:
    DeadLetterSelection = decoded(
        LETTER_FILTER.rows,
        "DeadLetterSelection",
        "A filter of dead letters; an empty one matches all open dead letters.",
        RequestBody,
    )


class DeadLetterFilter(DeadLetterSelection, frozen=True, kw_only=True):
    """A filter of dead letters, and the most dead letters to process."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    cursor: Annotated[str, Meta(max_length=512, description="`nextCursor` of the previous answer.")] | None = None


class DeadLetterChoice(RequestBody, frozen=True, kw_only=True):
    """Dead letters with these ids, or all that match a filter."""

    ids: Annotated[list[str], Meta(max_length=1000)] | None = None
    filter: DeadLetterFilter | None = None


class DeadLetterRetry(DeadLetterChoice, frozen=True, kw_only=True):
    """Dead letters to run again, and changes of their params."""

    params: Annotated[
        dict[str, Any] | None, Meta(description="A merge patch of the params: null removes a member.")
    ] = None


class ReplayBody(RequestBody, frozen=True, kw_only=True):
    """Dead letters to run again at a limited rate."""

    filter: DeadLetterSelection
    rate: (
        Annotated[str, Meta(description='The highest rate of retries, such as "10/1s"; unlimited by default.')] | None
    ) = None
    params: Annotated[
        dict[str, Any] | None, Meta(description="A merge patch of the params: null removes a member.")
    ] = None
