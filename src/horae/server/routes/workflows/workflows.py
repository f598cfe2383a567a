"""Workflows under way: their graphs, and that they are paused or go on; and the grid of a job's executions."""

from typing import Annotated

from msgspec import Meta

from horae.engine.base.execution_sealing import hidden
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
    """Read the steps of a workflow's execution: how they stand, their times, and those that it waited for."""
    return ok(await call.node.workflows.graphs.graph(call.namespace, call.id()))


@post(
    f"{API}/executions/{{id}}/pause", "executions.pause", ExecutionView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=(NotFound, Gone, Conflict),
)  # fmt: skip
async def pause(call: ApiCall) -> Response:
    """Let no step of a workflow start, nor of those below it, until it is resumed; what runs goes on."""
    return ok(hidden(await call.node.workflows.graphs.pause(call.namespace, call.id())))


@post(
    f"{API}/executions/{{id}}/resume", "executions.resume", ExecutionView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=(NotFound, Gone, Conflict),
)  # fmt: skip
async def resume(call: ApiCall) -> Response:
    """Let a paused workflow go on, also from a step before which it stopped."""
    return ok(hidden(await call.node.workflows.graphs.resume(call.namespace, call.id())))


class Gridded(Paged, frozen=True, kw_only=True):
    """A page of executions, and in which order they stand in it."""

    by: Annotated[GridOrder, Meta(description="run: the newest first; interval: by the data they are about.")] = "run"


@get(f"{API}/jobs/{{ref}}/grid", "jobs.grid", GridView, access=VIEW, scope=by_job, refuses=(NotFound, BadInput))
async def grid(call: ApiCall, query: Gridded) -> Response:
    """A job's executions, newest first, and how the steps of each stand if it is a workflow."""
    page = await call.node.workflows.grid.page(
        call.namespace, call.path("ref"), limit=query.limit, cursor=query.cursor, by=query.by
    )
    return ok(page)
