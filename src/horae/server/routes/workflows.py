"""Workflows: graphs, pausing and resuming, manual actions on steps, reruns, and the grid of a job's executions."""

from typing import Annotated, Any

from msgspec import Meta, Raw, field

from horae.engine.base.execution_sealing import without_sealed
from horae.engine.executions.reruns import RerunRequest
from horae.engine.workflows.workflow_views import GridOrder
from horae.errors import BadInput, Conflict, Forbidden, Gone, NotFound, OverQuota, TooLarge
from horae.model.base.view import Page
from horae.model.executions.execution_view import ExecutionView
from horae.model.fleet.protocol import ABSENT
from horae.model.workflows.approval_view import ApprovalView
from horae.model.workflows.decisions.graph import GraphView
from horae.model.workflows.grid_view import GridView
from horae.server.access import OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import Paged
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, get, post
from horae.server.routes.executions.submission import SubmissionReceipt, accepted
from horae.server.scopes import by_execution, by_job, closed


@get(
    f"{API}/executions/{{id}}/graph", "executions.graph", GraphView,
    access=VIEW, scope=by_execution, refuses=(NotFound, Gone, Conflict),
)  # fmt: skip
async def graph(call: ApiCall) -> Response:
    """Read the steps of a workflow's execution, with their states, times and dependencies."""
    return ok(await call.node.workflows.graphs.graph(call.namespace, call.id()))


@post(
    f"{API}/executions/{{id}}/pause", "executions.pause", ExecutionView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=(NotFound, Gone, Conflict),
)  # fmt: skip
async def pause(call: ApiCall) -> Response:
    """Pause a workflow and the workflows below it: no step starts until it is resumed; running steps continue."""
    return ok(without_sealed(await call.node.workflows.graphs.pause(call.namespace, call.id())))


@post(
    f"{API}/executions/{{id}}/resume", "executions.resume", ExecutionView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=(NotFound, Gone, Conflict),
)  # fmt: skip
async def resume(call: ApiCall) -> Response:
    """Resume a paused workflow, also a workflow that stopped at a breakpoint."""
    return ok(without_sealed(await call.node.workflows.graphs.resume(call.namespace, call.id())))


class GridQuery(Paged, frozen=True, kw_only=True):
    """A page of executions and their order."""

    by: Annotated[
        GridOrder, Meta(description="`run`: newest execution first; `interval`: in the order of data intervals.")
    ] = "run"


@get(f"{API}/jobs/{{ref}}/grid", "jobs.grid", GridView, access=VIEW, scope=by_job, refuses=(NotFound, BadInput))
async def grid(call: ApiCall, query: GridQuery) -> Response:
    """List a job's executions, newest first, with the states of their steps if it is a workflow."""
    page = await call.node.workflows.grid.page(
        call.namespace, call.path("ref"), limit=query.limit, cursor=query.cursor, by=query.by
    )
    return ok(page)


_REFUSES = (NotFound, Conflict, Forbidden, Gone, TooLarge)
Why = Annotated[str, Meta(max_length=2000, description="The reason, stored with the step.")]
_SINCE = "The first step to run again, or `failed` for the failed steps. Earlier successful steps are not run again."
Since = Annotated[str, Meta(max_length=128, description=_SINCE)]


class StepAnswer(RequestBody, frozen=True, kw_only=True):
    """The approval or rejection of a waiting step."""

    step: Annotated[str, Meta(max_length=128, description="The step; required if several steps wait.")] | None = None
    comment: Why = ""


class StepSkip(RequestBody, frozen=True, kw_only=True):
    """The reason for skipping a step."""

    reason: Why = ""


class StepCompletion(RequestBody, frozen=True, kw_only=True):
    """The manual completion of a step."""

    result: Annotated[Raw, Meta(description="The step's result for later steps; null by default.")] = ABSENT
    reason: Why = ""


class RerunBody(RequestBody, frozen=True, kw_only=True):
    """The options of a rerun."""

    since: Since = field(default="", name="from")
    params: Annotated[dict[str, Any], Meta(description="Changed params, as a merge patch.")] | None = None
    latest: Annotated[bool, Meta(description="Use the present definitions, not those of the first run.")] = False
    breakpoints: Annotated[
        tuple[str, ...], Meta(max_length=100, description="Steps before which the workflow pauses.")
    ] = ()


@post(
    f"{API}/executions/{{id}}/rerun", "executions.rerun", SubmissionReceipt,
    access=OPERATE, scope=by_execution, audit=REQUEST, status=202, refuses=(NotFound, Conflict, Gone, OverQuota),
)  # fmt: skip
async def rerun(call: ApiCall, body: RerunBody) -> Response:
    """Run an ended execution again, as a new execution. A workflow can begin at a given step or at its failed steps."""
    wish = RerunRequest(since=body.since, params=body.params, latest=body.latest, breakpoints=tuple(body.breakpoints))
    receipt = await call.node.work.reruns.rerun(call.namespace, call.id(), wish, call.caller)
    return ok(accepted(receipt), 202, location=f"{API}/executions/{receipt.execution_id}")


@get(f"{API}/approvals", "executions.approvals", Page[ApprovalView], access=VIEW, scope=closed)
async def approvals(call: ApiCall, query: Paged) -> Response:
    """List steps of workflows that wait for approval, the longest wait first."""
    return ok(await call.node.workflows.steps_by_hand.approvals(call.namespace, limit=query.limit, cursor=query.cursor))


@post(
    f"{API}/executions/{{id}}/approve", "executions.approve", ExecutionView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=_REFUSES,
)  # fmt: skip
async def approve(call: ApiCall, body: StepAnswer) -> Response:
    """Approve a waiting step of a workflow."""
    answered = call.node.workflows.steps_by_hand.answer(call.who, call.id(), body.step, body.comment, agreed=True)
    return ok(without_sealed(await answered))


@post(
    f"{API}/executions/{{id}}/reject", "executions.reject", ExecutionView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=_REFUSES,
)  # fmt: skip
async def reject(call: ApiCall, body: StepAnswer) -> Response:
    """Reject a waiting step of a workflow; the step fails."""
    answered = call.node.workflows.steps_by_hand.answer(call.who, call.id(), body.step, body.comment, agreed=False)
    return ok(without_sealed(await answered))


@post(
    f"{API}/executions/{{id}}/steps/{{step}}/skip", "executions.skip-step", ExecutionView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=_REFUSES,
)  # fmt: skip
async def skip(call: ApiCall, body: StepSkip) -> Response:
    """Skip a step of a workflow; its executions are cancelled."""
    return ok(
        without_sealed(
            await call.node.workflows.steps_by_hand.skip(call.who, call.id(), call.path("step"), body.reason)
        )
    )


@post(
    f"{API}/executions/{{id}}/steps/{{step}}/complete", "executions.complete-step", ExecutionView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=_REFUSES,
)  # fmt: skip
async def complete(call: ApiCall, body: StepCompletion) -> Response:
    """Complete a step of a workflow with a given result; its executions are cancelled."""
    done = call.node.workflows.steps_by_hand.complete(call.who, call.id(), call.path("step"), body.result, body.reason)
    return ok(without_sealed(await done))
