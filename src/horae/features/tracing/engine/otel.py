"""Export of spans by OpenTelemetry: its SDK batches them and sends them over OTLP/HTTP in the background.

The endpoint and all options of the SDK are set by the usual OTEL_* variables; the setting `otlp_endpoint` sets the
endpoint, too. The SDK is an extra: `pip install horae[otel]`.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

import structlog

from horae.env import Env
from horae.errors import BadInput
from horae.features.tracing.engine.spans import Tracing
from horae.model.base.trace import TraceContext
from horae.model.executions.tracer import TraceSpan

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
ROOM = 2048  # spans that may wait to be sent, unless OTEL_BSP_MAX_QUEUE_SIZE sets another number
CLOSING = 2.0  # seconds to send the remaining spans when the process ends
log = structlog.get_logger("horae.engine")


def open_sink(endpoint: str, service: str, environ: Mapping[str, str]) -> "OtelSink | None":
    """Return the exporter of spans, or None if no endpoint is configured.

    Raises BadInput when a variable has an invalid value, or the setting `otlp_endpoint` is used and the SDK is missing.
    If only OTEL_* variables name an endpoint, a missing SDK just causes a warning in the log, because the variables may
    be meant for other programs.
    """
    if not is_enabled(endpoint, environ):
        return None
    try:
        return OtelSink(endpoint, environ.get("OTEL_SERVICE_NAME") or service, environ)
    except ValueError as error:
        remedy = "Correct or remove the variables OTEL_BSP_* and OTEL_EXPORTER_OTLP_*."
        raise BadInput(f"The OTEL_* variables for traces are not valid: {str(error).rstrip('.')}.", remedy) from None
    except ImportError:
        remedy = "Install it with `pip install horae[otel]`, or remove otlp_endpoint from the settings."
        if endpoint:
            raise BadInput(
                "otlp_endpoint is set, but OpenTelemetry's SDK is missing.", remedy, field="otlp_endpoint"
            ) from None
        log.warning("no traces: OpenTelemetry's SDK is missing", remedy="pip install horae[otel]")
        return None


def is_enabled(endpoint: str, environ: Mapping[str, str]) -> bool:
    """Tell whether an endpoint is configured, and the OTEL_* variables do not turn traces off."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return bool(endpoint) or any(environ.get(name) for name in ENDPOINT_VARIABLES)


def open_tracer(endpoint: str, environ: Mapping[str, str], env: Env) -> Tracing | None:
    """Return the tracer of a server, or None if no endpoint is configured; raises BadInput as `open_sink` does."""
    sink = open_sink(endpoint, "horae", environ)
    return None if sink is None else Tracing(env, sink)


class OtelSink:
    """An exporter that passes spans to the SDK, which sends them in batches.

    If too many spans wait to be sent, further spans are dropped here, before any work is spent on them.
    """

    def __init__(self, endpoint: str, service: str, environ: Mapping[str, str]) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import Decision
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        from horae.features.tracing.engine import readable
        from horae.version import __version__

        resource = Resource.create({"service.name": service, "service.version": __version__})
        self._scope = InstrumentationScope("horae", __version__)
        self._yes = Decision.RECORD_AND_SAMPLE
        self._endpoint = endpoint
        self._room = int(environ.get("OTEL_BSP_MAX_QUEUE_SIZE") or ROOM)
        self._exporter = readable.CountingExporter(_exporter(endpoint))
        self._processor = BatchSpanProcessor(self._exporter, max_queue_size=self._room)
        self._readable, self._context = readable.readable, readable.context
        self._recorded = self._dropped = 0
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)

    @property
    def counts(self) -> Mapping[str, int]:
        return {"sent": self._exporter.sent, "failed": self._exporter.failed, "dropped": self._dropped}

    def samples(self, trace_id: str, given: TraceContext | None = None) -> bool:
        from opentelemetry.trace import NonRecordingSpan, set_span_in_context

        parent = None if given is None else set_span_in_context(NonRecordingSpan(self._context(given)))
        return self.provider.sampler.should_sample(parent, int(trace_id, 16), "horae").decision is self._yes

    def record(self, span: TraceSpan) -> None:
        if self._recorded - self._exporter.sent - self._exporter.failed >= self._room:
            if not self._dropped:
                log.warning("spans are dropped: the collector is unreachable or too slow", room=self._room)
            self._dropped += 1
            return
        self._recorded += 1
        self._processor.on_end(self._readable(span, self.provider.resource, self._scope))

    def serve_users(self) -> None:
        """Send the spans of users' code, too. They have a queue of their own, so they do not count here."""
        from opentelemetry import trace
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            self.provider.add_span_processor(BatchSpanProcessor(_exporter(self._endpoint)))
            trace.set_tracer_provider(self.provider)

    async def close(self) -> None:
        """Send the remaining spans, for at most `CLOSING` seconds.

        A thread sends them; if it needs longer, it ends with the process.
        """
        sent = asyncio.Event()
        call_soon = asyncio.get_running_loop().call_soon_threadsafe

        def finish() -> None:
            self._processor.shutdown()  # type: ignore[no-untyped-call]
            self.provider.shutdown()
            with suppress(RuntimeError):  # the event loop has ended
                call_soon(sent.set)

        Thread(target=finish, name="horae-traces", daemon=True).start()
        with suppress(TimeoutError):
            await asyncio.wait_for(sent.wait(), CLOSING)


def _exporter(endpoint: str) -> "SpanExporter":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces") if endpoint else OTLPSpanExporter()
