"""Traces of attempts in a worker."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from horae.model.base.trace import TraceContext, read_trace, root_of, span_of
from horae.model.executions.tracer import SpanSink, TraceSpan
from horae.worker.holding import EndedItem, HeldSlice, ItemOutcome

if TYPE_CHECKING:
    from horae.worker.session import WorkerSession


class AttemptTracer:
    """Records the attempts of one worker as spans.

    The parent of an attempt's span is the span of the submission of its execution.
    """

    def __init__(self, sink: SpanSink, worker: str) -> None:
        self.sink, self._worker = sink, worker

    def header(self, held_slice: HeldSlice, index: int) -> str:
        """Return the `traceparent` header that an attempt passes on: to its function, command or HTTP request."""
        return self._context(held_slice, index)[0].header

    def ended(self, session: "WorkerSession", job: str, endings: Sequence[EndedItem]) -> None:
        """Record ended items, except items that never started, which are not attempts."""
        for held_slice, index, started, ended, outcome in endings:
            if started is None or ended is None:
                continue
            context, parent = self._context(held_slice, index)
            if not context.sampled:
                continue
            error = outcome.error if isinstance(outcome, ItemOutcome) else None
            self.sink.record(
                TraceSpan(
                    name=f"run {job}", kind="consumer", context=context, parent=parent,
                    start=session.time.instant(started), end=session.time.instant(ended),
                    attributes={
                        "horae.job": job, "horae.execution_id": str(held_slice.execution(index)),
                        "horae.attempt": held_slice.grant.attempt, "horae.worker": self._worker,
                        "horae.outcome": outcome.outcome if isinstance(outcome, ItemOutcome) else "success",
                    },
                    error=error,
                )
            )  # fmt: skip

    def _context(self, held_slice: HeldSlice, index: int) -> tuple[TraceContext, str | None]:
        """Return the trace context of an attempt, and the id of its parent span.

        The attempt of an execution without a trace has no parent. An unsampled trace gets no span for the attempt.
        """
        execution = held_slice.execution(index)
        extra = held_slice.extra(index)
        given = read_trace(extra.trace, extra.trace_state)
        if given is not None and not given.sampled:
            return given, None
        trace_id = root_of(execution).trace_id if given is None else given.trace_id
        sampled = self.sink.samples(trace_id, given)
        state = None if given is None else given.state
        context = TraceContext(trace_id, span_of("attempt", execution, held_slice.grant.attempt), sampled, state)
        return context, None if given is None else given.span_id


TracerFactory = Callable[[str], AttemptTracer] | None  # from the worker's name to its tracer; None: without a tracer
