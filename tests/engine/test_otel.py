"""Spans are sent to a collector, which may be available, unavailable, or silent."""

import os
import socket
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from structlog.testing import capture_logs

from horae.errors import BadInput
from horae.features.tracing.engine import otel
from horae.features.tracing.engine.otel import OtelSink, open_sink
from horae.model.base.trace import TraceContext
from horae.model.executions.tracer import TraceSpan
from horae.model.fleet.protocol import Failure
from tests.acceptance.otlp import collector
from tests.waiting import eventually

ROOM = 512  # the smallest size that the SDK accepts


def span(number: int, error: Failure | None = None) -> TraceSpan:
    own = TraceContext(f"{number + 1:032x}", f"{number + 1:016x}", state="vendor=a")
    return TraceSpan(
        name="run job", kind="consumer", context=own, parent=f"{9:016x}", start=1_000, end=2_000,
        attributes={"horae.attempt": 1}, error=error,
    )  # fmt: skip


@pytest.fixture
def silent() -> Iterator[str]:
    """Run a collector that accepts every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch):
    for name, value in (("BSP_MAX_QUEUE_SIZE", ROOM), ("BSP_SCHEDULE_DELAY", 20), ("EXPORTER_OTLP_TIMEOUT", 30)):
        monkeypatch.setenv(f"OTEL_{name}", str(value))
    monkeypatch.setattr(otel, "CLOSING", 0.05)


def sink_to(url: str) -> OtelSink:
    sink = open_sink(url, "horae", os.environ)
    assert sink is not None
    return sink


@pytest.mark.parametrize("away", ["refusing", "silent"])
async def test_spans_beyond_the_buffer_are_dropped_and_logged_once(away: str, silent: str):
    sink = sink_to("http://127.0.0.1:9" if away == "refusing" else silent)
    with capture_logs() as lines:
        for number in range(ROOM + 100):
            sink.record(span(number))
    counts = sink.counts
    await sink.close()

    assert counts == {"sent": 0, "failed": 0, "dropped": 100}
    assert [line["event"] for line in lines if line["log_level"] == "warning"] == [
        "spans are dropped: the collector is unreachable or too slow"
    ]


async def test_sent_spans_are_counted_and_have_state_and_exception():
    with collector() as told:
        sink = sink_to(told.url)
        long = "x" * 20_000
        sink.record(span(0, Failure(type="Bad", message="no", traceback=f"{long}the end")))
        sink.record(span(1))
        await eventually(lambda: sink.counts["sent"] == 2)
        await sink.close()

    failed, fine = told.spans
    (event,) = failed.events
    assert (failed.is_error, fine.is_error, fine.events, fine.state) == (True, False, [], "vendor=a")
    assert (event["exception.type"], event["exception.message"]) == ("Bad", "no")
    assert event["exception.stacktrace"].endswith("the end")
    assert len(event["exception.stacktrace"]) == 8_000


@pytest.mark.parametrize(
    ("name", "value"), [("BSP_MAX_QUEUE_SIZE", "many"), ("BSP_MAX_QUEUE_SIZE", "7"), ("BSP_MAX_QUEUE_SIZE", "-1")]
)
def test_an_invalid_variable_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    monkeypatch.setenv(f"OTEL_{name}", value)
    with pytest.raises(BadInput, match="OTEL_"):
        sink_to("http://127.0.0.1:9")


async def test_the_spans_of_users_are_sent_and_not_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trace, "set_tracer_provider", lambda provider: None)  # because it can be set only once
    with collector() as told:
        sink = sink_to(told.url)
        sink.serve_users()
        sink.provider.get_tracer("mine").start_span("theirs").end()
        sink.record(span(0))
        await eventually(lambda: sorted(one.name for one in told.spans) == ["run job", "theirs"])
        await eventually(lambda: sink.counts["sent"] == 1)
        await sink.close()
    assert sink.counts == {"sent": 1, "failed": 0, "dropped": 0}
