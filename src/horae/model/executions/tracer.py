"""Tracing as the kernel calls it: one request, one grant and one workflow at a time."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.base.trace import TraceContext
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Parcel
from horae.model.executions.slice import Running
from horae.model.fleet.protocol import Submit

Made = tuple[Instant, Instant]  # when an execution was due, and when it was made


class Submitting(Struct, frozen=True):
    """A traced request on its way to the store."""

    context: TraceContext
    parent: str | None
    start: Instant


class Tracer(Protocol):
    """Records the spans of executions that a server submits, grants and begins."""

    def submitting(self, requests: Sequence[Submit]) -> Submitting | None:
        """Begin the span of a request; None when its sender asked for no trace."""
        ...

    def submitted(
        self, one: Submitting, job: str, count: int, executions: Sequence[UUID], error: BaseException | None
    ) -> None:
        """End the span of a request."""
        ...

    def granted(self, slice: Running, parcel: Parcel, job: str) -> list[Extra]:
        """Record how long items were queued; return each item's extra with its trace."""
        ...

    def context(self, extra: Extra, execution: UUID, job: str, made: Made, *, first: bool) -> TraceContext:
        """Return the context of an execution; without one, begin a trace, recorded at the `first` start."""
        ...

    def waited(
        self, context: TraceContext, execution: UUID, attempt: int, job: str, since: Instant, until: Instant
    ) -> None:
        """Record how long an attempt was queued."""
        ...

    def within(self, extra: Extra, execution: UUID, attempt: int) -> str:
        """Return the trace header that a workflow's steps follow."""
        ...
