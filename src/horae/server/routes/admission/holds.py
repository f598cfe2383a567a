"""Holds and maintenance windows of one queue or all queues: while they last, no execution of the queue starts."""

from typing import Annotated

from msgspec import Meta, field

from horae.engine.admission.holds import MOST_REASON, HoldRequest
from horae.errors import Conflict, NotFound
from horae.model.admission.hold_view import HoldView, ReleaseView
from horae.model.base.view import CompleteList
from horae.server.access import OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import Duration, RequestBody, When
from horae.server.reading.queries import Query, Text
from horae.server.reply import Response, nothing, ok
from horae.server.route import API, CHANGES, REQUEST, delete, get, post, put
from horae.server.scopes import by_queue, closed

Reason = Annotated[
    str, Meta(max_length=MOST_REASON, description="The reason, such as deploy-123; held executions show it.")
]


class HoldBody(RequestBody, frozen=True, kw_only=True):
    """The duration of a hold: `for` or `until`; up to 30 days."""

    length: Annotated[Duration, Meta(description="The duration of the hold.")] | None = field(name="for", default=None)
    until: Annotated[When, Meta(description="The end of the hold, instead of `for`.")] | None = None
    since: Annotated[When, Meta(description="The start of the hold; at once by default.")] | None = field(
        name="from", default=None
    )

    reason: Reason = ""
    drain: Annotated[bool, Meta(description="Show that a user waits until `running` is 0.")] = False

    def asked(self) -> HoldRequest:
        return HoldRequest(length=self.length, until=self.until, since=self.since, reason=self.reason, drain=self.drain)


class WindowBody(RequestBody, frozen=True, kw_only=True):
    """The options of a maintenance window."""

    reason: Reason = ""

    drain: Annotated[bool, Meta(description="Show that a user waits until `running` is 0.")] = False


class ReleaseQuery(Query, frozen=True, kw_only=True):
    """The selection of holds to release."""

    reason: Annotated[Text, Meta(description="Only holds with this reason.")] | None = None


class HoldListQuery(Query, frozen=True, kw_only=True):
    """The selection of holds to list."""

    queue: Annotated[Text, Meta(description="Only holds of this queue.")] | None = None
    ended: Annotated[bool, Meta(description="Include holds that ended in the last 30 days.")] = False


@get(f"{API}/holds", "holds.list", CompleteList[HoldView], access=VIEW, scope=closed, refuses=(NotFound,))
async def list_holds(call: ApiCall, query: HoldListQuery) -> Response:
    """List holds and maintenance windows, newest first, with their ends, reasons and authors."""
    return ok(
        CompleteList(items=await call.node.admission.holds.list(call.namespace, queue=query.queue, ended=query.ended))
    )


@post(
    f"{API}/queues/{{name}}/hold", "queues.hold", HoldView,
    access=OPERATE, scope=by_queue, audit=CHANGES, status=201, refuses=(NotFound, Conflict),
)  # fmt: skip
async def hold(call: ApiCall, body: HoldBody) -> Response:
    """Hold a queue for a time: after the answer, no server starts an execution of the queue.

    Running executions continue. Submitted and fired executions are queued and start after the hold ends or is released.
    A second hold with the same reason moves the end of the first.
    """
    return ok(await call.node.admission.holds.open(call.namespace, call.path("name"), body.asked(), call.caller), 201)


@delete(
    f"{API}/queues/{{name}}/hold", "queues.release", ReleaseView,
    access=OPERATE, scope=by_queue, audit=CHANGES, status=200, refuses=(NotFound,),
)  # fmt: skip
async def release(call: ApiCall, query: ReleaseQuery) -> Response:
    """End the holds of a queue at once. Windows, and holds that cover all queues, remain; the answer names them."""
    return ok(await call.node.admission.holds.release(call.namespace, call.path("name"), query.reason, call.caller))


@post(
    f"{API}/holds", "holds.open", HoldView, access=OPERATE, scope=closed, audit=REQUEST, status=201, refuses=(Conflict,)
)
async def hold_all(call: ApiCall, body: HoldBody) -> Response:
    """Hold all queues for a time, as POST /api/v1/queues/{name}/hold does for one queue."""
    return ok(await call.node.admission.holds.open(call.namespace, None, body.asked(), call.caller), 201)


@delete(f"{API}/holds", "holds.release", ReleaseView, access=OPERATE, scope=closed, audit=REQUEST, status=200)
async def release_all(call: ApiCall, query: ReleaseQuery) -> Response:
    """End the holds that cover all queues; holds of single queues remain."""
    return ok(await call.node.admission.holds.release(call.namespace, None, query.reason, call.caller))


@put(
    f"{API}/queues/{{name}}/windows/{{calendar}}", "queues.window", HoldView,
    access=OPERATE, scope=by_queue, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def window(call: ApiCall, body: WindowBody) -> Response:
    """Make a calendar a queue's maintenance window: while the calendar is open, no execution of the queue starts."""
    view = await call.node.admission.holds.put_window(
        call.namespace, call.path("name"), call.path("calendar"), drain=body.drain, reason=body.reason, by=call.caller
    )
    return ok(view)


@delete(
    f"{API}/queues/{{name}}/windows/{{calendar}}", "queues.remove-window",
    access=OPERATE, scope=by_queue, audit=CHANGES, refuses=(NotFound,),
)  # fmt: skip
async def remove_window(call: ApiCall) -> Response:
    """Remove a maintenance window from a queue."""
    await call.node.admission.holds.remove_window(call.namespace, call.path("name"), call.path("calendar"), call.caller)
    return nothing()


@put(
    f"{API}/windows/{{calendar}}", "holds.window", HoldView,
    access=OPERATE, scope=closed, audit=REQUEST, refuses=(NotFound, Conflict),
)  # fmt: skip
async def window_of_all(call: ApiCall, body: WindowBody) -> Response:
    """Make a calendar the maintenance window of all queues: while the calendar is open, no execution starts."""
    view = await call.node.admission.holds.put_window(
        call.namespace, None, call.path("calendar"), drain=body.drain, reason=body.reason, by=call.caller
    )
    return ok(view)


@delete(
    f"{API}/windows/{{calendar}}", "holds.remove-window",
    access=OPERATE, scope=closed, audit=REQUEST, refuses=(NotFound,),
)  # fmt: skip
async def remove_window_of_all(call: ApiCall) -> Response:
    """Remove a maintenance window from all queues."""
    await call.node.admission.holds.remove_window(call.namespace, None, call.path("calendar"), call.caller)
    return nothing()
