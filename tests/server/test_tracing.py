"""Spans of a server: submissions, waiting times in queues, and the traces they belong to."""

import sys
from typing import Any

import msgspec
import pytest

from horae.engine.server_node import ServerNode
from horae.env import SECOND, Env, VirtualClock
from horae.errors import BadInput
from horae.features.tracing.engine.otel import is_enabled, open_sink
from horae.features.tracing.engine.spans import Tracing
from horae.features.tracing.part import TracingPart
from horae.model.base.trace import read_trace
from horae.model.executions.execution import Extra
from horae.model.fleet.protocol import Failure, Grant, Outcome
from tests.server.conftest import Api
from tests.server.working import HandWorker
from tests.spans import Spans

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = {"traceparent": f"00-{TRACE}-{SPAN}-01"}


def extras(grant: Grant) -> list[Extra]:
    return msgspec.json.decode(grant.extras, type=list[Extra])


def traces(grant: Grant) -> list[str | None]:
    return [extra.trace for extra in extras(grant)]


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def told() -> bool:
    """Return whether spans are exported."""
    return True


@pytest.fixture
def tracer(env: Env, spans: Spans, told: bool) -> Tracing | None:
    return Tracing(env, spans) if told else None


async def job(api: Api, name: str = "pay", **fields: Any) -> None:
    task = {} if "workflow" in fields else {"command": "true"}
    answer = await api.post("/api/v1/jobs", json={"name": name, **task, **fields})
    assert answer.status_code == 201, answer.text


async def test_a_submission_and_every_wait_of_its_attempts_are_spans_of_the_given_trace(
    api: Api, worker: Api, node: ServerNode, clock: VirtualClock, spans: Spans
):
    await job(api, retries=1)
    made = await api.post("/api/v1/executions", json={"job": "pay"}, headers=GIVEN)
    clock.advance(3 * SECOND)
    hand = await HandWorker.register(worker)
    grants = await hand.take()
    await hand.report(grants, error=Failure(type="Bad"))
    clock.advance(3600 * SECOND)
    await node.work.promoter.step()
    again = await hand.take()

    submit, first, second = spans.all

    id = made.json()["executionId"]
    assert (submit.name, submit.context.trace_id, submit.parent) == ("submit pay", TRACE, SPAN)
    assert submit.attributes == {"horae.job": "pay", "horae.executions": 1, "horae.execution_id": id}
    assert [span.name for span in (first, second)] == ["queue pay"] * 2
    assert {span.parent for span in (first, second)} == {submit.context.span_id}
    assert (first.end - first.start, first.attributes["horae.attempt"]) == (3 * SECOND, 1)
    assert second.attributes["horae.attempt"] == 2
    assert first.context.span_id != second.context.span_id
    assert traces(grants[0]) == traces(again[0]) == [submit.context.header]
    assert (await api.get(f"/api/v1/executions/{id}")).json()["traceId"] == TRACE


async def test_an_execution_without_a_submission_starts_one_trace(
    api: Api, worker: Api, node: ServerNode, clock: VirtualClock, spans: Spans
):
    await job(api, schedule="* * * * *")
    clock.advance(61 * SECOND - clock.now() % (60 * SECOND))
    await node.firing.scheduler.step()
    await node.base.directory.step()
    (fired,) = (await api.get("/api/v1/executions")).json()["items"]
    hand = await HandWorker.register(worker)
    (grant,) = await hand.take()
    await hand.exchange(outcomes=[released(grant)])
    await hand.take()

    root = spans.named("fire pay")

    assert (root.parent, root.context.trace_id) == (None, fired["traceId"])
    assert root.end - root.start == SECOND  # the delay of the fire
    assert spans.names == ["fire pay", "queue pay", "queue pay"]
    assert {span.parent for span in spans.all[1:]} == {root.context.span_id}
    assert traces(grant) == [root.context.header]


def released(grant: Grant) -> Outcome:
    """Return the outcome of a slice that a worker hands back."""
    return Outcome(parcel=grant.parcel, lo=grant.lo, hi=grant.hi, attempt=grant.attempt, outcome="released")


async def test_refusals_are_errors_and_unsampled_traces_are_not_recorded(
    api: Api, worker: Api, node: ServerNode, spans: Spans
):
    await api.post("/api/v1/executions", json={"job": "nobody"})
    (refused,) = spans.all
    assert refused.error is not None
    assert refused.error.type == "NotFound"

    await job(api)
    spans.all.clear()
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-00"}
    await api.post("/api/v1/executions", json={"job": "pay"}, headers=headers)
    spans.quiet = True
    await api.post("/api/v1/executions", json={"job": "pay"})
    spans.deaf = True
    await api.post("/api/v1/executions", json={"job": "pay"}, headers=GIVEN)
    hand = await HandWorker.register(worker, concurrency=3)
    grants = await hand.take(3)

    assert spans.all == []
    given = sorted(trace for grant in grants for trace in traces(grant))
    assert given.count(headers["traceparent"]) == 2
    assert [read_trace(one).sampled for one in given] == [False] * 3


async def test_many_of_one_request_are_one_submission(api: Api, worker: Api, node: ServerNode, spans: Spans):
    await job(api)
    await api.post("/api/v1/executions", json={"job": "pay", "items": [{}, {}, {}]})
    hand = await HandWorker.register(worker, concurrency=9)
    (grant,) = await hand.take(9)

    assert spans.names == ["submit pay", *["queue pay"] * 3]
    assert spans.all[0].attributes["horae.executions"] == 3
    assert traces(grant) == [spans.all[0].context.header] * 3


@pytest.mark.parametrize("told", [False])
async def test_without_tracing_a_given_trace_is_forwarded_and_no_other_is_created(api: Api, worker: Api):
    await job(api)
    made = await api.post("/api/v1/executions", json={"job": "pay"}, headers=GIVEN)
    await api.post("/api/v1/executions", json={"job": "pay"}, headers={"traceparent": "nonsense"})
    hand = await HandWorker.register(worker)

    assert sorted(trace or "" for grant in await hand.take() for trace in traces(grant)) == ["", GIVEN["traceparent"]]
    items = (await api.get("/api/v1/executions")).json()["items"]
    assert {one["executionId"]: one["traceId"] for one in items}[made.json()["executionId"]] == TRACE
    assert [one["traceId"] for one in items].count(None) == 1


async def test_a_workflow_is_a_span_around_its_steps_in_any_trace(
    api: Api, worker: Api, node: ServerNode, clock: VirtualClock, spans: Spans
):
    await job(api)
    inner = {"steps": [{"name": "b", "job": "pay"}]}
    await job(api, "inner", workflow=inner)
    await job(api, "outer", workflow={"steps": [{"name": "a", "job": "inner"}]})
    hand = await HandWorker.register(worker)
    for headers, error in ((GIVEN, None), ({}, Failure(type="Bad", message="no", permanent=True))):
        spans.all.clear()
        await api.post("/api/v1/executions", json={"job": "outer"}, headers=headers)
        for service in (node.workflows.opener, node.workflows.advancer, node.workflows.opener, node.workflows.advancer):
            await service.step()
        grants = await hand.take()
        clock.advance(5 * SECOND)
        await hand.report(grants, error=error)
        await node.part(TracingPart).workflows.step()

        outer, inside = spans.named("run outer"), spans.named("run inner")

        assert outer.parent == spans.named("submit outer").context.span_id
        assert inside.parent == spans.named("queue inner").parent == outer.context.span_id
        assert spans.named("queue pay").parent == inside.context.span_id
        assert {span.context.trace_id for span in spans.all} == {outer.context.trace_id}
        assert outer.end - outer.start == 5 * SECOND
        assert outer.attributes["horae.outcome"] == ("success" if error is None else "failed")
        assert (outer.error is None) is (error is None)
        assert traces(grants[0]) == [inside.context.header]


async def test_a_workflow_that_is_not_sampled_is_not_recorded(api: Api, worker: Api, node: ServerNode, spans: Spans):
    await job(api)
    await job(api, "flow", workflow={"steps": [{"name": "a", "job": "pay"}]})
    quiet = f"00-{TRACE}-{SPAN}-00"
    await api.post("/api/v1/executions", json={"job": "flow"}, headers={"traceparent": quiet})
    await node.workflows.opener.step()
    hand = await HandWorker.register(worker)
    grants = await hand.take()
    await hand.report(grants)
    await node.part(TracingPart).workflows.step()

    assert traces(grants[0]) == [quiet]
    assert spans.all == []


STATE = "vendor=a,other=b"


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
async def test_tracestate_is_forwarded_with_its_trace(
    api: Api, worker: Api, node: ServerNode, told: bool, spans: Spans
):
    await job(api)
    await job(api, "flow", workflow={"steps": [{"name": "a", "job": "pay"}]})
    hand = await HandWorker.register(worker, concurrency=9)
    given = [*GIVEN.items(), ("tracestate", "vendor=a"), ("tracestate", "other=b")]
    for body in ({"job": "pay"}, {"job": "pay", "items": [{}]}, {"job": "flow"}):
        assert (await api.post("/api/v1/executions", json=body, headers=given)).status_code == 201
    await node.workflows.opener.step()

    kept = [extra.trace_state for grant in await hand.take(9) for extra in extras(grant)]

    assert kept == [STATE] * 3
    assert {span.context.state for span in spans.all} == ({STATE} if told else set())


async def test_tracestate_without_a_trace_is_dropped(api: Api, worker: Api, node: ServerNode):
    await job(api)
    for headers in ({"tracestate": "a=b"}, {"traceparent": "x", "tracestate": "a=b"}, {**GIVEN, "tracestate": "=b"}):
        await api.post("/api/v1/executions", json={"job": "pay"}, headers=headers)
    hand = await HandWorker.register(worker, concurrency=9)

    assert [extra.trace_state for grant in await hand.take(9) for extra in extras(grant)] == [None] * 3


@pytest.mark.parametrize(("sampler", "follows"), [("parentbased_always_off", True), ("always_off", False)])
async def test_the_sampler_of_opentelemetry_decides(monkeypatch: pytest.MonkeyPatch, sampler: str, follows: bool):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    sink = open_sink("http://127.0.0.1:9", "horae", {})
    try:
        assert not sink.samples(TRACE)
        assert sink.samples(TRACE, read_trace(GIVEN["traceparent"])) is follows
    finally:
        await sink.close()


def test_spans_are_exported_if_an_endpoint_is_set_and_export_is_enabled(monkeypatch: pytest.MonkeyPatch):
    place = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    assert is_enabled("", place)
    assert is_enabled("http://collector:4318", {})
    assert not is_enabled("", {})
    assert not is_enabled("http://collector:4318", {"OTEL_SDK_DISABLED": "true"})
    assert not is_enabled("", {**place, "OTEL_TRACES_EXPORTER": "none"})
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert open_sink("", "horae", place) is None
    with pytest.raises(BadInput, match="SDK is missing") as refused:
        open_sink("http://collector:4318", "horae", {})
    assert "horae[otel]" in refused.value.remedy
