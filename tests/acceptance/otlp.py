"""A collector of traces: it receives OTLP over HTTP and stores the spans."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from msgspec import Struct
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class ReceivedSpan(Struct, frozen=True):
    """A span as it arrived."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    attributes: dict[str, str | int]
    is_error: bool
    state: str
    events: list[dict[str, str]]  # each with its name and attributes


class Collector:
    """Everything received so far: spans, and the headers of other requests, which http jobs send."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[ReceivedSpan] = []
        self.calls: list[dict[str, str]] = []

    def spans_of(self, trace: str) -> dict[str, ReceivedSpan]:
        """Return the spans of a trace by name."""
        return {span.name: span for span in self.spans if span.trace == trace}

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            service = {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"]
            for scope in resource.scope_spans:
                self.spans += [_span(service, span) for span in scope.spans]


def _span(service: str, span) -> ReceivedSpan:
    values = {a.key: a.value.string_value or a.value.int_value for a in span.attributes}
    return ReceivedSpan(
        service, span.name, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(),
        span.start_time_unix_nano, span.end_time_unix_nano, values, span.status.code == 2, span.trace_state,
        [{"name": e.name, **{a.key: a.value.string_value for a in e.attributes}} for e in span.events],
    )  # fmt: skip


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a collector on this machine."""

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"] or 0))
            if self.path == "/v1/traces":
                found.take(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
                answer = ExportTraceServiceResponse().SerializeToString()
            else:
                found.calls.append({name.lower(): value for name, value in self.headers.items()})
                answer = b"{}"
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
    found = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
