"""Attempts as spans, and the trace inside them."""

from functools import partial

import pytest

from horae.client.transport.calls import current_trace
from horae.model.base.ids import execution_id
from horae.model.base.trace import UNTRACED, TraceContext, TraceHeaders, root_of, span_of
from horae.model.definitions.tasks import CommandTask, PythonTask
from horae.worker.code.tracing import AttemptTracer
from tests.spans import Spans
from tests.waiting import eventually
from tests.worker.functions import app
from tests.worker.local import result, shop

KINDS = [
    PythonTask(function="traced"),
    PythonTask(function="traced_async"),
    PythonTask(function="traced", isolation="process"),
]


@pytest.mark.parametrize("task", KINDS, ids=["thread", "task", "process"])
async def test_a_function_and_what_it_submits_is_in_the_span_of_its_attempt(task: PythonTask):
    spans = Spans()
    async with shop(app, tracer=partial(AttemptTracer, spans)) as it:
        parcel = it.submit(task)
        seen = result(await it.outcome(parcel))
        await eventually(lambda: spans.all)

    (span,) = spans.all
    execution = execution_id(parcel, 0)
    own = TraceContext(root_of(execution).trace_id, span_of("attempt", execution, 1))
    assert seen == [own.header, own.header, None, None]
    assert (span.name, span.context, span.parent, span.error) == ("run job", own, None, None)
    assert span.attributes["horae.outcome"] == "success"
    assert span.start <= span.end


async def test_a_failed_attempt_is_an_error_and_an_unsampled_one_is_not_recorded():
    spans = Spans()
    async with shop(tracer=partial(AttemptTracer, spans)) as it:
        await it.run(CommandTask(shell="exit 3"))
        (span,) = await eventually(lambda: spans.all)
        spans.quiet = True
        await it.run(CommandTask(shell="exit 3"))

    assert len(spans.all) == 1
    assert span.error is not None
    assert span.error.type == "ExitCode"
    assert span.attributes["horae.outcome"] == "failed"


def test_a_process_continues_the_trace_in_which_it_was_started(monkeypatch: pytest.MonkeyPatch):
    header = f"00-{'a' * 32}-{'b' * 16}-01"
    assert current_trace() == UNTRACED
    monkeypatch.setenv("TRACEPARENT", header)
    assert current_trace() == TraceHeaders(header)
    monkeypatch.setenv("TRACESTATE", "vendor=a")
    assert current_trace() == TraceHeaders(header, "vendor=a")
    monkeypatch.setenv("TRACEPARENT", "nonsense")
    assert current_trace() == UNTRACED
