"""The kernel's interface to tracing: a tracer in servers, and a sink of spans in servers and workers."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.base.trace import TraceContext
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Parcel
from horae.model.executions.slice import RunningSlice
from horae.model.fleet.protocol import Failure
from horae.model.fleet.submit import Submit

DueAndCreated = tuple[Instant, Instant]  # when an execution was due, and when it was created


Kind = Literal["producer", "consumer", "internal"]
Attributes = Mapping[str, str | int]


class TraceSpan(Struct, frozen=True, kw_only=True):
    """A finished span of a trace."""

    name: str
    kind: Kind
    context: TraceContext
    parent: str | None  # the id of a span of the same trace
    start: Instant
    end: Instant
    attributes: Attributes
    error: Failure | None = None


class SpanSink(Protocol):
    """The destination of spans."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Return how many spans were sent, failed to be sent, and were dropped because the buffer was full."""
        ...

    def samples(self, trace_id: str, given: TraceContext | None = None) -> bool:
        """Return whether to record a trace that begins here, or that a caller began."""
        ...

    def record(self, span: TraceSpan) -> None:
        """Record a span to be sent soon; never blocks."""
        ...

    def serve_users(self) -> None:
        """Also send the spans of users' own code, unless users have configured a destination for them."""
        ...

    async def close(self) -> None:
        """Send the remaining spans."""
        ...


class SubmitSpan(Struct, frozen=True):
    """The open span of a request that is being stored."""

    context: TraceContext
    parent: str | None
    start: Instant


class Tracer(Protocol):
    """Records the spans of executions that a server submits, grants and starts."""

    @property
    def sink(self) -> SpanSink:
        """Return the destination of the spans."""
        ...

    def submitting(self, requests: Sequence[Submit]) -> SubmitSpan | None:
        """Begin the span of a request; None when its sender did not trace it."""
        ...

    def submitted(
        self, one: SubmitSpan, job: str, count: int, executions: Sequence[UUID], error: BaseException | None
    ) -> None:
        """End the span of a request."""
        ...

    def granted(self, running: RunningSlice, parcel: Parcel, job: str) -> list[Extra]:
        """Record how long items were queued; return each item's extra with its trace."""
        ...

    def context(self, extra: Extra, execution: UUID, job: str, made: DueAndCreated, *, first: bool) -> TraceContext:
        """Return the context of an execution. If it has none, begin a trace, which is recorded at the `first` start."""
        ...

    def waited(
        self, context: TraceContext, execution: UUID, attempt: int, job: str, since: Instant, until: Instant
    ) -> None:
        """Record how long an attempt was queued."""
        ...

    def within(self, extra: Extra, execution: UUID, attempt: int) -> str:
        """Return the trace header of a workflow's attempt, under which the spans of its steps are."""
        ...
