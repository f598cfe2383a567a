"""Executions: submitted singly or in bulk, read, explained, signalled, followed and cancelled."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Raw

from horae.engine.base.execution_sealing import page_without_sealed
from horae.errors import Conflict, Gone, KeyReused, NotFound, OverQuota, TooLarge
from horae.model.base.trace import UNTRACED
from horae.model.base.view import CompleteList, Page
from horae.model.executions.execution_view import AttemptView, CancelView, ExecutionView
from horae.model.executions.explain_view import ExplanationView, JobExplanationView
from horae.model.executions.parcel import check_item
from horae.model.executions.signal_waits import SignalView
from horae.model.fleet.protocol import ABSENT, MAX_SIGNAL, MAX_SIGNAL_NAME
from horae.model.fleet.submit import Submit
from horae.server.access import OPERATE, PUBLIC, VIEW
from horae.server.call import ApiCall
from horae.server.idempotency import submission_key
from horae.server.reading.bodies import LARGE_LIMIT, ReasonBody, RequestBody
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, UNRECORDED, get, post
from horae.server.routes.executions.execution_queries import ExecutionList
from horae.server.routes.executions.submission import (
    BulkReceipt,
    ExecutionBody,
    ManyExecutions,
    ManyOfOneJob,
    SubmissionBody,
    SubmissionReceipt,
    bulk_answer,
    encoded_bulk_answer,
    is_old,
    merge_results,
    readable_requests,
    requests_of,
    shared_options,
    single_receipt,
    warnings_of,
    with_result,
    with_warning,
)
from horae.server.scopes import Arguments, by_execution, by_job, by_job_filter, check_jobs, closed


async def by_submissions(call: ApiCall, arguments: Arguments) -> None:
    """Check every job in the body."""
    body: SubmissionBody = arguments["body"]
    if body.job is not None:
        return await check_jobs(call, [body.job])
    asked = requests_of(body, UNTRACED)
    await check_jobs(call, dict.fromkeys(one.job for one in asked if isinstance(one, Submit)))
    return None


@post(
    f"{API}/executions", "executions.submit",
    {201: (SubmissionReceipt, BulkReceipt), 200: SubmissionReceipt, 207: BulkReceipt},
    access=OPERATE, scope=by_submissions, audit=UNRECORDED, takes=(ExecutionBody, ManyOfOneJob, ManyExecutions),
    limit=LARGE_LIMIT, idempotency="submission", refuses=(NotFound, Conflict, KeyReused, OverQuota),
)  # fmt: skip
async def submit(call: ApiCall, body: SubmissionBody) -> Response:
    """Submit one execution, or many.

    A single submission returns 201; 200 with `deduplicated` if its key belongs to an existing execution, or with
    `cached` and the cached `result`. A bulk submission returns 201 if all items were accepted and 207 if some were
    refused, each with its error. With `atomic`, all items are refused if one is wrong.
    """
    if body.items is not None and body.job is not None:
        return await _submit_lot(call, body, body.job, body.items)
    partial = body.items is not None and not body.atomic
    requests = requests_of(body, call.trace)
    receipts = await call.node.submitter.submit(
        call.namespace, readable_requests(requests, partial=partial), origin="submit", caller=call.caller,
        idempotency=submission_key(call), partial=partial,
    )  # fmt: skip
    if body.items is not None:
        asked = (request.job for request in requests if isinstance(request, Submit))
        answer = bulk_answer(merge_results(requests, receipts), await warnings_of(call, asked))
        return ok(answer, 207 if answer.refused else 201)
    receipt = await with_result(call, single_receipt(receipts))
    if body.job is not None:
        receipt = await with_warning(call, body.job, receipt)
    return ok(receipt, 200 if is_old(receipt) else 201, location=f"{API}/executions/{receipt.execution_id}")


async def _submit_lot(call: ApiCall, body: SubmissionBody, job: str, items: Sequence[Raw]) -> Response:
    """Submit many executions of one job."""
    receipts, refused = await call.node.submitter.submit_bulk(
        call.namespace, shared_options(job, items, body, call.trace), items, origin="submit",
        caller=call.caller, idempotency=submission_key(call), partial=not body.atomic,
    )  # fmt: skip
    return Response(207 if refused else 201, encoded_bulk_answer(receipts, refused, await warnings_of(call, [job])))


@get(f"{API}/executions", "executions.list", Page[ExecutionView], access=VIEW, scope=by_job_filter, refuses=(NotFound,))
async def list_executions(call: ApiCall, query: ExecutionList) -> Response:
    """List executions, newest first. Large params and results are left out, and sensitive ones are hidden."""
    page = await call.node.work.executions.list(
        call.namespace, status=query.status, job=query.job, queue=query.queue, parent=query.parent, tag=query.tag,
        worker=query.worker, since=query.since, until=query.until, limit=query.limit, cursor=query.cursor,
    )  # fmt: skip
    return ok(page_without_sealed(page))


@get(
    f"{API}/executions/{{id}}", "executions.get", ExecutionView,
    access=VIEW, scope=by_execution, refuses=(NotFound, Gone),
)  # fmt: skip
async def get_execution(call: ApiCall) -> Response:
    """Read an execution."""
    return ok(
        call.node.base.execution_sealer.show(call.who, await call.node.work.executions.get(call.namespace, call.id()))
    )


@post(
    f"{API}/executions/{{id}}/cancel", "executions.cancel", CancelView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=(NotFound, Conflict, Gone),
)  # fmt: skip
async def cancel(call: ApiCall, body: ReasonBody) -> Response:
    """Cancel an execution that has not started; ask the worker to stop a running one."""
    return ok(await call.node.work.executions.cancel(call.namespace, call.id(), body.reason))


@get(
    f"{API}/executions/{{id}}/attempts", "executions.attempts", CompleteList[AttemptView],
    access=VIEW, scope=by_execution, refuses=(NotFound, Gone),
)  # fmt: skip
async def attempts(call: ApiCall) -> Response:
    """List the attempts of an execution in order, each with its error."""
    return ok(CompleteList(items=await call.node.work.executions.attempts(call.namespace, call.id())))


@get(
    f"{API}/executions/{{id}}/explain", "executions.explain", ExplanationView,
    access=VIEW, scope=by_execution, refuses=(NotFound, Gone),
)  # fmt: skip
async def explain_execution(call: ApiCall) -> Response:
    """Explain why an execution does not run: its closed gates in order, the remedy for each, and the probable start."""
    return ok(await call.node.work.explainer.execution(call.namespace, call.id()))


@get(f"{API}/jobs/{{ref}}/explain", "jobs.explain", JobExplanationView, access=VIEW, scope=by_job, refuses=(NotFound,))
async def explain_job(call: ApiCall) -> Response:
    """Explain why a job does not run: its triggers, its queue, its workers, and the gates of its executions."""
    return ok(await call.node.work.explainer.job(call.namespace, call.path("ref")))


class NewSignal(RequestBody, frozen=True, kw_only=True):
    """A signal: a name, and any JSON."""

    name: Annotated[
        str, Meta(min_length=1, max_length=MAX_SIGNAL_NAME, description="The name that the execution waits for.")
    ]
    payload: Annotated[Raw, Meta(description="The return value of `ctx.wait_for`; null by default.")] = ABSENT


@post(
    f"{API}/executions/{{id}}/signals", "executions.signal", SignalView,
    access=OPERATE, scope=by_execution, audit=REQUEST, status=202,
    refuses=(NotFound, Conflict, Gone, KeyReused, TooLarge),
)  # fmt: skip
async def signal(call: ApiCall, body: NewSignal) -> Response:
    """Send a signal to an execution that waits for it, now or later. A signal to an ended execution is refused."""
    key = call.idempotency_key()
    sent = await call.node.work.signals.send(call.namespace, call.id(), body.name, body.payload, key)
    return ok(sent, 202)


@post(
    f"{API}/callbacks/{{token}}", "callbacks.receive", SignalView,
    access=PUBLIC, scope=closed, audit=UNRECORDED, status=202, idempotency="none", limit=MAX_SIGNAL,
    refuses=(NotFound, Conflict, TooLarge),
)  # fmt: skip
async def receive_callback(call: ApiCall) -> Response:
    """Receive the call for a waiting step, with any JSON. The token is the credential; only the first call counts."""
    if call.body:
        check_item(b'{"body":' + call.body + b"}", "body")
    return ok(await call.node.workflows.callbacks.receive(call.path("token"), Raw(call.body)), 202)
