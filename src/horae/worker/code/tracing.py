"""Traces at a worker: what is told of attempts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from horae.model.base.trace import TraceContext, read_trace, root_of, span_of
from horae.model.executions.tracer import SpanSink, TraceSpan
from horae.worker.holding import EndedItem, HeldSlice, ItemOutcome

if TYPE_CHECKING:
    from horae.worker.session import WorkerSession


class AttemptTracer:
    """Tells of the attempts of one worker. An attempt follows from what its execution was submitted by."""

    def __init__(self, sink: SpanSink, worker: str) -> None:
        self.sink, self._worker = sink, worker

    def header(self, lot: HeldSlice, index: int) -> str:
        """What runs in an attempt follows from this."""
        return self._context(lot, index)[0].header

    def ended(self, session: "WorkerSession", job: str, endings: Sequence[EndedItem]) -> None:
        """These have ended; what never began is no attempt."""
        for lot, index, started, ended, outcome in endings:
            if started is None or ended is None:
                continue
            context, parent = self._context(lot, index)
            if not context.sampled:
                continue
            error = outcome.error if isinstance(outcome, ItemOutcome) else None
            self.sink.record(
                TraceSpan(
                    name=f"run {job}", kind="consumer", context=context, parent=parent,
                    start=session.instant(started), end=session.instant(ended),
                    attributes={
                        "horae.job": job, "horae.execution_id": str(lot.execution(index)),
                        "horae.attempt": lot.grant.attempt, "horae.worker": self._worker,
                        "horae.outcome": outcome.outcome if isinstance(outcome, ItemOutcome) else "success",
                    },
                    error=error,
                )
            )  # fmt: skip

    def _context(self, lot: HeldSlice, index: int) -> tuple[TraceContext, str | None]:
        """An attempt's own, and its parent; one of an execution that nobody traced is a root."""
        execution = lot.execution(index)
        extra = lot.extra(index)
        given = read_trace(extra.trace, extra.trace_state)
        if given is not None and not given.sampled:
            return given, None
        trace_id = root_of(execution).trace_id if given is None else given.trace_id
        sampled = self.sink.samples(trace_id, given)
        state = None if given is None else given.state
        context = TraceContext(trace_id, span_of("attempt", execution, lot.grant.attempt), sampled, state)
        return context, None if given is None else given.span_id
