"""Traces as a collector receives them: a server and a worker in separate processes, both exporting over OTLP."""

import json

import pytest
from opentelemetry import trace

from horae import Client
from tests.acceptance.fleet import KEY, Fleet
from tests.acceptance.otlp import Collector, collector
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(120)
SOON = {"OTEL_BSP_SCHEDULE_DELAY": "50"}
STATE = "vendor=opaque"
CALLER = trace.SpanContext(
    0xABC << 64 | 1, 0xDEF, False, trace.TraceFlags(1), trace.TraceState.from_header([STATE])
)  # fmt: skip
CALLERS_TRACE, CALLERS_SPAN = f"{CALLER.trace_id:032x}", f"{CALLER.span_id:016x}"


def test_an_execution_and_its_caller_share_one_trace(tmp_path):
    with collector() as collected:
        fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/horae.db")
        try:
            fleet.add_server("server", HORAE_OTLP_ENDPOINT=collected.url, HORAE_LOG_LEVEL="debug", **SOON)
            fleet.add_worker("w", OTEL_EXPORTER_OTLP_ENDPOINT=collected.url, HORAE_LOG_LEVEL="debug", **SOON)
            fleet.post("/jobs", {"name": "env", "command": {"shell": "echo $TRACEPARENT $TRACESTATE"}})
            fleet.post("/jobs", {"name": "call", "http": {"url": f"{collected.url}/hook", "method": "POST"}})
            fleet.post("/jobs", {"name": "spans", "python": "spans"})
            fleet.post("/jobs", {"name": "bad", "python": "fails"})
            steps = [{"name": "a", "job": "env"}, {"name": "b", "job": "call", "after": ["a"]}]
            fleet.post("/jobs", {"name": "flow", "workflow": {"steps": steps}})
            submitted_by_the_sdk(fleet, collected)
            a_function(fleet, collected)
            a_workflow(fleet, collected)
            untraced_failure(fleet, collected)
            not_sampled(fleet, collected)
        except BaseException:
            print(fleet.logs())
            raise
        finally:
            fleet.close()


def spans_of(collected: Collector, trace_id: str, *names: str):
    """Return the spans of a trace, once these are complete."""
    return eventually_sync(lambda: set(names) <= (found := collected.spans_of(trace_id)).keys() and found)


def submitted_by_the_sdk(fleet: Fleet, collected: Collector) -> None:
    """Check that submit, queue and run are below the current span; the command continues in the span of its attempt."""
    url = next(iter(fleet.urls.values()))
    with trace.use_span(trace.NonRecordingSpan(CALLER)), Client(url, key=KEY).sync as client:
        id = client.submit("env").id
    view = fleet.until(id, "success")
    assert view["traceId"] == CALLERS_TRACE
    found = spans_of(collected, CALLERS_TRACE, "submit env", "queue env", "run env")
    submit, queue, run = found["submit env"], found["queue env"], found["run env"]
    assert (submit.service, queue.service, run.service) == ("horae", "horae", "horae-worker")
    assert submit.parent == CALLERS_SPAN
    assert queue.parent == run.parent == submit.id
    assert submit.start <= queue.end <= run.end
    assert run.attributes["horae.execution_id"] == submit.attributes["horae.execution_id"] == id
    assert (run.attributes["horae.attempt"], run.attributes["horae.outcome"]) == (1, "success")
    (line,) = fleet.get(f"/executions/{id}/logs")["items"]
    assert line["text"] == f"00-{CALLERS_TRACE}-{run.id}-01 {STATE}"
    assert submit.state == queue.state == run.state == STATE
    in_the_logs(fleet, id, "env")


def in_the_logs(fleet: Fleet, id: str, job: str) -> None:
    """Check that log lines of both processes name the execution, its job, its attempt and its trace."""
    server, worker = fleet.servers["server"], fleet.workers["w"]
    for process, event in (
        (server, "attempt granted"), (server, "execution ended"), (worker, "attempt ended"),
    ):  # fmt: skip
        lines = [json.loads(line) for line in process.log.read_text().splitlines() if line.startswith("{")]
        (own,) = [line for line in lines if line.get("execution") == id and line["event"] == event]
        assert (own["job"], own["attempt"], own["trace"]) == (job, 1, CALLERS_TRACE)
    ended = [line for line in lines if line["event"] == "attempt ended"]
    assert ended[0]["outcome"] == "success"


def a_function(fleet: Fleet, collected: Collector) -> None:
    """Check that spans made by a function belong to its attempt."""
    id = fleet.submit("spans")
    view = fleet.until(id, "success")
    found = spans_of(collected, view["traceId"], "run spans", "inner")
    assert found["inner"].parent == found["run spans"].id
    assert found["inner"].service == "horae-worker"
    assert view["result"] == view["traceId"]


def a_workflow(fleet: Fleet, collected: Collector) -> None:
    """Check that steps of a workflow are in its trace, including the calls they make."""
    given = {"traceparent": f"00-{9:032x}-{9:016x}-01", "tracestate": STATE}
    id = fleet.post("/executions", {"job": "flow"}, **given)["executionId"]
    view = fleet.until(id, "success")
    steps = ("queue env", "run env", "queue call", "run call")
    found = spans_of(collected, view["traceId"], "submit flow", "queue flow", "run flow", *steps)
    assert found["queue flow"].parent == found["run flow"].parent == found["submit flow"].id
    assert {found[name].parent for name in steps} == {found["run flow"].id}
    assert found["run flow"].start <= found["run env"].start <= found["run call"].end <= found["run flow"].end
    steps = fleet.get(f"/executions?parent={id}")["items"]
    assert {step["traceId"] for step in steps} == {view["traceId"]}
    assert collected.calls[-1]["traceparent"] == f"00-{view['traceId']}-{found['run call'].id}-01"
    assert collected.calls[-1]["tracestate"] == STATE


def untraced_failure(fleet: Fleet, collected: Collector) -> None:
    """Check that an execution without a caller's trace begins its own, and that a failed attempt is an error."""
    id = fleet.post("/jobs/bad/trigger")["executionId"]
    view = fleet.until(id, "failed")
    found = spans_of(collected, view["traceId"], "submit bad", "queue bad", "run bad")
    assert found["submit bad"].parent == ""
    assert found["run bad"].is_error
    (event,) = found["run bad"].events
    assert (event["name"], event["exception.type"]) == ("exception", view["error"]["type"])
    assert "Traceback" in event["exception.stacktrace"]
    assert not found["queue bad"].is_error


def not_sampled(fleet: Fleet, collected: Collector) -> None:
    """Check that an unsampled trace stays unsampled, and that an unreadable header starts a new trace."""
    quiet = f"{7:032x}"
    id = fleet.post("/executions", {"job": "env"}, traceparent=f"00-{quiet}-{8:016x}-00")["executionId"]
    assert fleet.until(id, "success")["traceId"] == quiet
    (line,) = fleet.get(f"/executions/{id}/logs")["items"]
    assert line["text"] == f"00-{quiet}-{8:016x}-00"
    id = fleet.post("/executions", {"job": "env"}, traceparent="nonsense")["executionId"]
    spans_of(collected, fleet.until(id, "success")["traceId"], "submit env", "run env")
    assert collected.spans_of(quiet) == {}
