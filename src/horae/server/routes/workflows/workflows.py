"""Running workflows: their graphs, pausing and resuming; and the grid of a job's executions."""

from typing import Annotated

from msgspec import Meta

from horae.engine.base.execution_sealing import without_sealed
from horae.engine.workflows.workflow_grid import GridOrder
from horae.errors import BadInput, Conflict, Gone, NotFound
from horae.model.executions.execution_view import ExecutionView
from horae.model.workflows.decisions.graph import GraphView
from horae.model.workflows.grid_view import GridView
from horae.server.access import OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.queries import Paged
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, get, post
from horae.server.scopes import by_execution, by_job


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
