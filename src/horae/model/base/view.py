"""What the API shows, as people and programs read it. What each thing looks like is beside it: `job_view`, ...

camelCase, times as RFC 3339 text, durations as "5m", null until known. A field that is left out of a list because it is
large is absent, never null: read the thing itself to see it.
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
    """Something shown."""


# One of the states of an execution, which the document lists.
Status = Annotated[str, Meta(extra_json_schema={"enum": list(get_args(State))})]


class Versioned:
    """Marks the view of a definition whose `version` is its ETag, for If-Match."""

    __slots__ = ()


class Page(View, Generic[T], frozen=True, kw_only=True):
    """Part of a list; `nextCursor` asks for the next part and is null at the end."""

    items: list[T]
    next_cursor: str | None = None


class Whole(View, Generic[T], frozen=True, kw_only=True):
    """A whole list: it is short by nature, and has no further pages."""

    items: list[T]


def shown_time(at: Instant | None) -> str | None:
    """An instant as the API shows it."""
    return None if at is None else format_instant(at)


def in_seconds(micros: float | None) -> float | None:
    """A length of time as the API shows it where it is measured."""
    return None if micros is None else round(micros / SECOND, 6)
