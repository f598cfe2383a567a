"""What requests may say of dead letters: which, and what becomes of them."""

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from horae.features.dead_letters.model.replay import LETTERS
from horae.model.fields.derived import decoded
from horae.server.reading.bodies import RequestBody

if TYPE_CHECKING:  # what Python reads of the fields that are made of the table

    class DeadLetterWhich(RequestBody, frozen=True, kw_only=True):
        job: str | None = None
else:
    DeadLetterWhich = decoded(
        LETTERS.rows,
        "DeadLetterWhich",
        "Which dead letters, by what they are; an empty one means all that are open.",
        RequestBody,
    )


class DeadLetterFilter(DeadLetterWhich, frozen=True, kw_only=True):
    """Which dead letters, and how many of them."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    cursor: Annotated[str, Meta(max_length=512, description="`nextCursor` of the answer before.")] | None = None


class DeadLetterChoice(RequestBody, frozen=True, kw_only=True):
    """Dead letters by id, or all that match a filter."""

    ids: Annotated[list[str], Meta(max_length=1000)] | None = None
    filter: DeadLetterFilter | None = None


class DeadLetterRetry(DeadLetterChoice, frozen=True, kw_only=True):
    """Dead letters to run again, and what changes about their params."""

    params: Annotated[
        dict[str, Any] | None, Meta(description="A merge patch: members replace theirs, null takes one away.")
    ] = None


class ReplayBody(RequestBody, frozen=True, kw_only=True):
    """Dead letters to run again at a pace."""

    filter: DeadLetterWhich
    rate: Annotated[str, Meta(description='So many in a span, as "10/1s"; as fast as it goes otherwise.')] | None = None
    params: Annotated[
        dict[str, Any] | None, Meta(description="A merge patch: members replace theirs, null takes one away.")
    ] = None
