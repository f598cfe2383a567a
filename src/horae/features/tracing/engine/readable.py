"""Spans in the form of OpenTelemetry's SDK; imported only if the SDK is installed and used."""

from collections.abc import Mapping, Sequence

from msgspec import structs
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from horae.model.base.trace import TraceContext
from horae.model.executions.tracer import Kind, TraceSpan
from horae.model.fleet.protocol import Failure

TO_OTEL = 1000  # factor from Horae's times, in microseconds, to OpenTelemetry's, in nanoseconds
MOST_STATUS, MOST_MESSAGE = 200, 8_000  # characters of an error: in a span's status, and as its exception
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
KINDS: Mapping[Kind, SpanKind] = {
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
    "internal": SpanKind.INTERNAL,
}


def readable(span: TraceSpan, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    """Return a span in the form that exporters read."""
    error = span.error
    return ReadableSpan(
        name=span.name,
        context=context(span.context),
        parent=None if span.parent is None else context(structs.replace(span.context, span_id=span.parent)),
        resource=resource,
        attributes=span.attributes,
        kind=KINDS[span.kind],
        instrumentation_scope=scope,
        status=Status() if error is None else Status(StatusCode.ERROR, f"{error.type}: {error.message}"[:MOST_STATUS]),
        events=() if error is None else (_exception(error, span.end * TO_OTEL),),
        start_time=span.start * TO_OTEL,
        end_time=span.end * TO_OTEL,
    )


def context(of: TraceContext) -> SpanContext:
    """Return a trace context in the form of OpenTelemetry's SDK."""
    state = TraceState.from_header([of.state]) if of.state else None
    return SpanContext(int(of.trace_id, 16), int(of.span_id, 16), True, SAMPLED, state)


def _exception(error: Failure, at: int) -> Event:
    """Return a failure as an exception event of OpenTelemetry; a long traceback is cut at its beginning."""
    attributes = {"exception.type": error.type, "exception.message": error.message[:MOST_MESSAGE]}
    if error.traceback:
        attributes["exception.stacktrace"] = error.traceback[-MOST_MESSAGE:]
    return Event("exception", attributes, at)


class CountingExporter(SpanExporter):
    """An exporter that counts the spans that were sent, and those that could not be sent."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.sent = self.failed = 0  # written by the SDK's thread alone

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
            return result
        finally:
            if result is SpanExportResult.SUCCESS:
                self.sent += len(spans)
            else:
                self.failed += len(spans)

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)
