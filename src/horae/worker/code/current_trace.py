"""Makes the trace of an execution the current trace of OpenTelemetry's API while its function runs.

So the spans that the function records, and the requests that it sends by the SDK's client, belong to this trace.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from horae.model.base.trace import TraceHeaders, read_trace


def in_trace(headers: TraceHeaders, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that a trace is the current one during its calls. Without a valid trace, do not wrap it."""
    if read_trace(headers.parent) is None:
        return function

    def call_in_trace(*args: Any, **kwargs: Any) -> Any:
        with current_trace(headers):
            return function(*args, **kwargs)

    return call_in_trace


@contextmanager
def current_trace(headers: TraceHeaders) -> Iterator[None]:
    """Make a trace the current trace of OpenTelemetry's API during the block. Without a valid trace, do nothing."""
    given = read_trace(headers.parent, headers.state)
    if given is None:
        yield
        return
    from opentelemetry import context, trace

    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if given.sampled else trace.TraceFlags.DEFAULT)
    state = trace.TraceState.from_header([given.state]) if given.state else None
    span = trace.SpanContext(int(given.trace_id, 16), int(given.span_id, 16), True, flags, state)
    token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(span)))
    try:
        yield
    finally:
        context.detach(token)
