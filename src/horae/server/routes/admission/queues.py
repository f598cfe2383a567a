"""Queues: the order in which executions wait, and the policies that decide it."""

from typing import Annotated, Any

from msgspec import Meta

from horae.engine.admission.holds import MOST_REASON
from horae.errors import Conflict, NotFound
from horae.model.admission.queue import QUEUE, Queue
from horae.model.admission.queue_view import QueueView
from horae.model.base.view import CompleteList, View
from horae.model.fields import derived
from horae.server.access import EDIT, OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import Query, Text
from horae.server.reply import Response, ok
from horae.server.route import API, CHANGES, get, patch, post, put
from horae.server.scopes import by_queue, closed


class PurgeView(View, frozen=True, kw_only=True):
    """The number of cancelled executions."""

    cancelled: int


QueueBody = derived.body(QUEUE, "QueueBody", "A queue's definition; null resets a field to its default.", RequestBody)


class PauseBody(RequestBody, frozen=True, kw_only=True):
    """The reason for a pause."""

    reason: Annotated[str, Meta(max_length=MOST_REASON, description="The reason; held executions show it.")] = ""


class PurgeQuery(Query, frozen=True, kw_only=True):
    """The confirmation of a purge."""

    confirm: Annotated[Text, Meta(description="The queue's name once more.")] | None = None


@get(f"{API}/queues", "queues.list", CompleteList[QueueView], access=VIEW, scope=closed)
async def list_queues(call: ApiCall) -> Response:
    """List queues with their lanes, the numbers of queued and running executions, and their present holds."""
    return ok(CompleteList(items=await call.node.admission.queue_views.list(call.namespace)))


@get(f"{API}/queues/{{name}}", "queues.get", QueueView, access=VIEW, scope=by_queue, refuses=(NotFound,))
async def get_queue(call: ApiCall) -> Response:
    """Read a queue: its policy, its queued and running executions, and its holds."""
    return await _shown(call, await call.node.admission.queues.get(call.namespace, call.path("name")))


@put(
    f"{API}/queues/{{name}}",
    "queues.put",
    QueueView,
    access=EDIT,
    scope=closed,
    audit=CHANGES,
    takes=QueueBody,
    refuses=(Conflict,),
)
async def put_queue(call: ApiCall, body: dict[str, Any]) -> Response:
    """Define a queue, with immediate effect, also on queued executions. An absent field takes its default."""
    return await _shown(call, await call.node.admission.queues.put(call.namespace, call.path("name"), body))


@patch(
    f"{API}/queues/{{name}}",
    "queues.patch",
    QueueView,
    access=EDIT,
    scope=closed,
    audit=CHANGES,
    takes=QueueBody,
    refuses=(NotFound,),
)
async def patch_queue(call: ApiCall, body: dict[str, Any]) -> Response:
    """Change parts of a queue's definition."""
    return await _shown(call, await call.node.admission.queues.patch(call.namespace, call.path("name"), body))


@post(
    f"{API}/queues/{{name}}/pause", "queues.pause", QueueView,
    access=OPERATE, scope=by_queue, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def pause(call: ApiCall, body: PauseBody) -> Response:
    """Pause a queue until it is resumed: after the answer, no server starts an execution of the queue.

    Running executions continue.
    """
    name = call.path("name")
    await call.node.admission.holds.pause(call.namespace, name, body.reason, False, call.caller)
    return await _shown(call, await call.node.admission.queues.get(call.namespace, name))


@post(
    f"{API}/queues/{{name}}/resume", "queues.resume", QueueView,
    access=OPERATE, scope=by_queue, audit=CHANGES, refuses=(NotFound,),
)  # fmt: skip
async def resume(call: ApiCall) -> Response:
    """Resume a paused or drained queue. Holds with an end, and maintenance windows, remain."""
    name = call.path("name")
    await call.node.admission.holds.resume(call.namespace, name, call.caller)
    return await _shown(call, await call.node.admission.queues.set_state(call.namespace, name, "active"))


@post(
    f"{API}/queues/{{name}}/drain", "queues.drain", QueueView,
    access=OPERATE, scope=by_queue, audit=CHANGES, refuses=(NotFound,),
)  # fmt: skip
async def drain(call: ApiCall) -> Response:
    """Refuse further submissions to a queue, and run its present executions. Triggers of its jobs continue to fire."""
    return await _shown(call, await call.node.admission.queues.set_state(call.namespace, call.path("name"), "draining"))


@post(
    f"{API}/queues/{{name}}/purge", "queues.purge", PurgeView,
    access=OPERATE, scope=by_queue, audit=CHANGES, refuses=(NotFound,),
)  # fmt: skip
async def purge(call: ApiCall, query: PurgeQuery) -> Response:
    """Cancel every execution of a queue that has not started; `confirm` must be the queue's name."""
    done = await call.node.admission.queues.purge(call.namespace, call.path("name"), query.confirm, call.caller)
    return ok(PurgeView(cancelled=done.cancelled))


async def _shown(call: ApiCall, queue: Queue) -> Response:
    return ok(await call.node.admission.queue_views.show(queue))
