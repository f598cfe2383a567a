"""The trace of a running function as the current trace of OpenTelemetry's API.

The function's own spans and the SDK's client belong to it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from horae.model.base.trace import TraceHeaders, read_trace


def in_trace(carried: TraceHeaders, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with a trace as the current trace of its calls."""
    if read_trace(carried.parent) is None:
        return function

    def seeing(*args: Any, **kwargs: Any) -> Any:
        with current_trace(carried):
            return function(*args, **kwargs)

    return seeing


@contextmanager
def current_trace(carried: TraceHeaders) -> Iterator[None]:
    """Make a trace the current trace of OpenTelemetry's API."""
    given = read_trace(carried.parent, carried.state)
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
