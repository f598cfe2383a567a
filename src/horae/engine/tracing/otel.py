"""Spans by OpenTelemetry: its SDK batches them and sends them over OTLP/HTTP, beside everything else.

Where to, and all else that its SDK knows, is set by the usual OTEL_* variables; a setting of ours names the place, too.
The SDK is an extra: `pip install horae[otel]`.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

import structlog
from msgspec import structs

from horae.engine.tracing.spans import Kind, Span
from horae.errors import BadInput
from horae.model.protocol import Failure
from horae.model.trace import TraceContext

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Event
    from opentelemetry.trace import SpanContext

PLACES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
TO_OTEL = 1000  # its times are nanoseconds, ours microseconds
MOST_SAID, MOST_TOLD = 200, 8_000  # characters of an error: in a span's status, and as its exception
CLOSING = 2.0  # seconds that what is left has to be sent
log = structlog.get_logger("horae.engine")


def open_sink(endpoint: str, service: str, environ: Mapping[str, str]) -> "OtelSink | None":
    """Where spans go, if somebody is to be told; raises BadInput when that is set here and cannot be.

    The variables may be meant for others: without the SDK they only get a line in the log.
    """
    if not wanted(endpoint, environ):
        return None
    try:
        return OtelSink(endpoint, environ.get("OTEL_SERVICE_NAME") or service)
    except ImportError:
        remedy = "Install it with `pip install horae[otel]`, or take otlp_endpoint away."
        if endpoint:
            raise BadInput(
                "otlp_endpoint is set, but OpenTelemetry's SDK is missing.", remedy, field="otlp_endpoint"
            ) from None
        log.warning("no traces: OpenTelemetry's SDK is missing", remedy="pip install horae[otel]")
        return None


def wanted(endpoint: str, environ: Mapping[str, str]) -> bool:
    """Whether spans are to be told."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return bool(endpoint) or any(environ.get(place) for place in PLACES)


class OtelSink:
    """Hands spans to the SDK's batches."""

    def __init__(self, endpoint: str, service: str) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import Decision
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        from horae.version import __version__

        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces") if endpoint else OTLPSpanExporter()
        resource = Resource.create({"service.name": service, "service.version": __version__})
        self._scope = InstrumentationScope("horae", __version__)
        self._yes = Decision.RECORD_AND_SAMPLE
        self._processor = BatchSpanProcessor(exporter)
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(self._processor)
        self._kinds: dict[Kind, trace.SpanKind] = {
            "producer": trace.SpanKind.PRODUCER,
            "consumer": trace.SpanKind.CONSUMER,
            "internal": trace.SpanKind.INTERNAL,
        }

    def samples(self, trace_id: str, given: TraceContext | None = None) -> bool:
        from opentelemetry.trace import NonRecordingSpan, set_span_in_context

        parent = None if given is None else set_span_in_context(NonRecordingSpan(_context(given)))
        return self.provider.sampler.should_sample(parent, int(trace_id, 16), "horae").decision is self._yes

    def record(self, span: Span) -> None:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import Status, StatusCode

        error = span.error
        self._processor.on_end(
            ReadableSpan(
                name=span.name,
                context=_context(span.context),
                parent=None if span.parent is None else _context(structs.replace(span.context, span_id=span.parent)),
                resource=self.provider.resource,
                attributes=dict(span.attributes),
                kind=self._kinds[span.kind],
                instrumentation_scope=self._scope,
                status=Status()
                if error is None
                else Status(StatusCode.ERROR, f"{error.type}: {error.message}"[:MOST_SAID]),
                events=() if error is None else (_exception(error, span.end * TO_OTEL),),
                start_time=span.start * TO_OTEL,
                end_time=span.end * TO_OTEL,
            )
        )

    def serve_users(self) -> None:
        from opentelemetry import trace

        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            trace.set_tracer_provider(self.provider)

    async def close(self) -> None:
        """Whoever cannot be reached is not waited for longer than this; a thread that still tries ends with us."""
        sent = asyncio.Event()
        told = asyncio.get_running_loop().call_soon_threadsafe

        def finish() -> None:
            self.provider.shutdown()
            with suppress(RuntimeError):  # nobody waits any longer
                told(sent.set)

        Thread(target=finish, name="horae-traces", daemon=True).start()
        with suppress(TimeoutError):
            await asyncio.wait_for(sent.wait(), CLOSING)


def _exception(error: Failure, at: int) -> "Event":
    """A failure as OpenTelemetry's conventions tell of exceptions; of a long traceback, its end says the most."""
    from opentelemetry.sdk.trace import Event

    told = {"exception.type": error.type, "exception.message": error.message[:MOST_TOLD]}
    if error.traceback:
        told["exception.stacktrace"] = error.traceback[-MOST_TOLD:]
    return Event("exception", told, at)


def _context(of: TraceContext) -> "SpanContext":
    from opentelemetry import trace

    return trace.SpanContext(
        int(of.trace_id, 16),
        int(of.span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
        trace_state=trace.TraceState.from_header([of.state]) if of.state else None,
    )
