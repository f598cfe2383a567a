"""Base classes of API views. Each view is defined beside its subject, in `job_view` and the like.

Names are in camelCase, times are RFC 3339 text, durations are written like "5m", and unknown values are null. Items of
a list do not have the large fields at all, not even as null; the same object has them when it is read alone.
"""

from typing import Annotated, Generic, TypeVar, get_args

from msgspec import Meta, Struct

from horae.env import SECOND, Instant
from horae.model.base.instant import format_instant
from horae.model.executions.execution import State

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Seconds = Annotated[float, Meta(description="Seconds.")]
T = TypeVar("T")


class View(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all structs that the API returns."""


# A state of an execution, as an enum in the OpenAPI document.
Status = Annotated[str, Meta(extra_json_schema={"enum": list(get_args(State))})]


class Versioned:
    """A marker of views: their `version` is also sent as the ETag, which clients repeat in If-Match."""

    __slots__ = ()


class Page(View, Generic[T], frozen=True, kw_only=True):
    """Part of a list; `nextCursor` requests the next part and is null at the end."""

    items: list[T]
    next_cursor: str | None = None


class CompleteList(View, Generic[T], frozen=True, kw_only=True):
    """A complete list. It is always short, so it has no pages."""

    items: list[T]


def shown_time(at: Instant | None) -> str | None:
    """Format an instant for the API."""
    return None if at is None else format_instant(at)


def in_seconds(micros: float | None) -> float | None:
    """Convert a measured duration to seconds for the API."""
    return None if micros is None else round(micros / SECOND, 6)
