"""The trace that functions run in, for whoever asks OpenTelemetry's API: their own spans, and the SDK's client."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from horae.model.trace import read_trace


def inside(header: str | None, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that sees a trace as the current one."""
    if read_trace(header) is None:
        return function

    def seeing(*args: Any, **kwargs: Any) -> Any:
        with within(header):
            return function(*args, **kwargs)

    return seeing


@contextmanager
def within(header: str | None) -> Iterator[None]:
    """Have a trace be the current one, for whoever asks OpenTelemetry's API."""
    given = read_trace(header)
    if given is None:
        yield
        return
    from opentelemetry import context, trace

    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if given.sampled else trace.TraceFlags.DEFAULT)
    span = trace.SpanContext(int(given.trace_id, 16), int(given.span_id, 16), is_remote=True, trace_flags=flags)
    token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(span)))
    try:
        yield
    finally:
        context.detach(token)
