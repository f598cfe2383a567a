"""Workflows under way: their graphs, and that they are paused or go on."""

from horae.engine.base.sealed import hidden
from horae.errors import Conflict, Gone, NotFound
from horae.model.executions.execution_view import ExecutionView
from horae.model.workflows.decisions.graph import GraphView
from horae.server.access import OPERATE, VIEW
from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, REQUEST, get, post
from horae.server.scopes import by_execution


@get(
    f"{API}/executions/{{id}}/graph", "executions.graph", GraphView,
    access=VIEW, scope=by_execution, refuses=(NotFound, Gone, Conflict),
)  # fmt: skip
async def graph(call: Call) -> Reply:
    """Read the steps of a workflow's execution: how they stand, their times, and those that it waited for."""
    return ok(await call.node.workflows.graphs.graph(call.namespace, call.id()))


@post(
    f"{API}/executions/{{id}}/pause", "executions.pause", ExecutionView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=(NotFound, Gone, Conflict),
)  # fmt: skip
async def pause(call: Call) -> Reply:
    """Let no step of a workflow start, nor of those below it, until it is resumed; what runs goes on."""
    return ok(hidden(await call.node.workflows.graphs.pause(call.namespace, call.id())))


@post(
    f"{API}/executions/{{id}}/resume", "executions.resume", ExecutionView,
    access=OPERATE, scope=by_execution, audit=REQUEST, refuses=(NotFound, Gone, Conflict),
)  # fmt: skip
async def resume(call: Call) -> Reply:
    """Let a paused workflow go on, also from a step before which it stopped."""
    return ok(hidden(await call.node.workflows.graphs.resume(call.namespace, call.id())))
