"""Query strings as typed values; an unknown parameter is refused.

The queries about one noun, such as jobs, are defined beside the noun's routes.
"""

from functools import cache
from typing import Annotated, Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, Struct, field

from horae.errors import BadInput
from horae.server.reading.bodies import When
from horae.server.reading.validation_errors import validation_error

MOST_PARAMETERS = 100

Limit = Annotated[int, Meta(ge=1, le=1000, description="The maximum number of entries: 1 to 1000.")]
Cursor = Annotated[str, Meta(max_length=512, description="`nextCursor` of the previous page.")]
Text = Annotated[str, Meta(max_length=256)]


JobRef = Annotated[Text, Meta(description="Only entries of this job, by name or id.")]
QueueName = Annotated[Text, Meta(description="Only entries of this queue.")]
Since = Annotated[When, Meta(description="Only from this time on.")]
Until = Annotated[When, Meta(description="Only before this time.")]


class Query(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The query parameters of a request."""


class Paged(Query, frozen=True, kw_only=True):
    """The choice of a page of a list."""

    limit: Limit = 50
    cursor: Cursor | None = None


class DryRun(Query, frozen=True, kw_only=True):
    """The choice between a change and its preview."""

    dry_run: Annotated[
        bool, Meta(description="Write nothing; return the result that would be written, or the refusal.")
    ] = False


class TimeWindow(Query, frozen=True, kw_only=True):
    """A window of the past."""

    since: Annotated[When, Meta(description="Only from this time on, rounded down to a whole step.")] | None = field(
        default=None, name="from"
    )
    until: (
        Annotated[
            When, Meta(description="Only before this time, rounded up to a whole minute, hour or day; now by default.")
        ]
        | None
    ) = field(default=None, name="to")


def decode_query(query: bytes, query_type: type[Struct]) -> Any:
    """Return a query string's values. An unknown parameter is refused, and a repeated one unless it is a list."""
    given: dict[str, Any] = {}
    lists = _list_fields(query_type)
    for name, value in _pairs(query):
        if "\0" in value or "\0" in name:
            raise BadInput(
                "The query contains the character NUL.", "Remove the character.", field=name.replace("\0", "")
            )
        if name in lists:
            given.setdefault(name, []).extend(value.split(","))
        elif name in given:
            raise BadInput(f"{name} is given twice.", "Give it once.", field=name)
        else:
            given[name] = value
    try:
        values = msgspec.convert(given, query_type, strict=False)
    except msgspec.ValidationError as error:
        raise validation_error(str(error), query_type) from None
    for one in msgspec.structs.fields(query_type):
        if one.encode_name in given and getattr(values, one.name) is None:
            raise BadInput(f"{one.encode_name} cannot be null.", "Remove it, or give a value.", field=one.encode_name)
    return values


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        raise BadInput(f"The query has over {MOST_PARAMETERS} parameters.", "Give fewer.", field="query") from None


@cache
def _list_fields(query_type: type[Struct]) -> frozenset[str]:
    fields = msgspec.structs.fields(query_type)
    return frozenset(field.encode_name for field in fields if "list[" in str(field.type))
