"""The trace of a call, so that its submissions belong to that trace."""

import os
import sys

from horae.model.base.trace import UNTRACED, TraceContext, TraceHeaders, checked_state, checked_trace

PARENT, STATE = "TRACEPARENT", "TRACESTATE"  # environment variables with the trace of a command


def current_trace() -> TraceHeaders:
    """Return the current OpenTelemetry span, or else the trace in which this process was started, if any.

    OpenTelemetry is not imported here: a program that has not imported it has no current span.
    """
    api = sys.modules.get("opentelemetry.trace")
    span = None if api is None else api.get_current_span().get_span_context()
    if span is not None and span.is_valid:
        own = TraceContext(f"{span.trace_id:032x}", f"{span.span_id:016x}", bool(span.trace_flags.sampled))
        return TraceHeaders(own.header, checked_state(span.trace_state.to_header()))
    parent = checked_trace(os.environ.get(PARENT))
    return UNTRACED if parent is None else TraceHeaders(parent, checked_state(os.environ.get(STATE)))
