"""Holds and maintenance windows: while one lasts, nothing of a queue, or of all queues, is started."""

from typing import Annotated

from msgspec import Meta, field

from horae.engine.admission.holds import MOST_REASON, HoldRequest
from horae.errors import Conflict, NotFound
from horae.model.admission.hold_view import HoldView, ReleasedView
from horae.model.base.view import Whole
from horae.server.access import OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import Duration, RequestBody, When
from horae.server.reading.queries import Query, Text
from horae.server.reply import Response, nothing, ok
from horae.server.route import API, CHANGES, REQUEST, delete, get, post, put
from horae.server.scopes import by_queue, closed

Reason = Annotated[str, Meta(max_length=MOST_REASON, description="Why, as deploy-123: what is held says so.")]


class HoldBody(RequestBody, frozen=True, kw_only=True):
    """For how long to hold: `for` or `until`; up to 30 days."""

    length: Annotated[Duration, Meta(description="How long it lasts.")] | None = field(name="for", default=None)
    until: Annotated[When, Meta(description="When it ends, instead of `for`.")] | None = None
    since: Annotated[When, Meta(description="When it begins; at once otherwise.")] | None = field(
        name="from", default=None
    )
    reason: Reason = ""
    drain: Annotated[bool, Meta(description="Somebody waits for what runs to end; `running` counts it.")] = False

    def asked(self) -> HoldRequest:
        return HoldRequest(length=self.length, until=self.until, since=self.since, reason=self.reason, drain=self.drain)


class WindowBody(RequestBody, frozen=True, kw_only=True):
    """What else is to be said of a maintenance window."""

    reason: Reason = ""
    drain: Annotated[bool, Meta(description="Somebody waits for what runs to end; `running` counts it.")] = False


class Release(Query, frozen=True, kw_only=True):
    """Which holds."""

    reason: Annotated[Text, Meta(description="Only what is held for this reason.")] | None = None


class HoldList(Query, frozen=True, kw_only=True):
    """Which holds."""

    queue: Annotated[Text, Meta(description="Only those that hold this queue.")] | None = None
    ended: Annotated[bool, Meta(description="Also those that ended in the last 30 days.")] = False


@get(f"{API}/holds", "holds.list", Whole[HoldView], access=VIEW, scope=closed, refuses=(NotFound,))
async def list_holds(call: ApiCall, query: HoldList) -> Response:
    """List holds and maintenance windows, newest first: until when, why, and who opened and ended them."""
    return ok(Whole(items=await call.node.admission.holds.list(call.namespace, queue=query.queue, ended=query.ended)))


@post(
    f"{API}/queues/{{name}}/hold", "queues.hold", HoldView,
    access=OPERATE, scope=by_queue, audit=CHANGES, status=201, refuses=(NotFound, Conflict),
)  # fmt: skip
async def hold(call: ApiCall, body: HoldBody) -> Response:
    """Start nothing of a queue for a time: once this is answered, no server does.

    What runs goes on. What is submitted or fires is queued and starts when the hold has ended, by itself or by a
    release. The same reason again moves the end.
    """
    return ok(await call.node.admission.holds.open(call.namespace, call.path("name"), body.asked(), call.caller), 201)


@delete(
    f"{API}/queues/{{name}}/hold", "queues.release", ReleasedView,
    access=OPERATE, scope=by_queue, audit=CHANGES, status=200, refuses=(NotFound,),
)  # fmt: skip
async def release(call: ApiCall, query: Release) -> Response:
    """Let a queue go on at once. Windows, and holds of all queues, go on; the answer names what holds still."""
    return ok(await call.node.admission.holds.release(call.namespace, call.path("name"), query.reason, call.caller))


@post(
    f"{API}/holds", "holds.open", HoldView, access=OPERATE, scope=closed, audit=REQUEST, status=201, refuses=(Conflict,)
)
async def hold_all(call: ApiCall, body: HoldBody) -> Response:
    """Start nothing of any queue for a time, as POST /api/v1/queues/{name}/hold does for one."""
    return ok(await call.node.admission.holds.open(call.namespace, None, body.asked(), call.caller), 201)


@delete(f"{API}/holds", "holds.release", ReleasedView, access=OPERATE, scope=closed, audit=REQUEST, status=200)
async def release_all(call: ApiCall, query: Release) -> Response:
    """End what holds all queues; what holds a single queue goes on."""
    return ok(await call.node.admission.holds.release(call.namespace, None, query.reason, call.caller))


@put(
    f"{API}/queues/{{name}}/windows/{{calendar}}", "queues.window", HoldView,
    access=OPERATE, scope=by_queue, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def window(call: ApiCall, body: WindowBody) -> Response:
    """Make a calendar a queue's maintenance window: while it is open, nothing of the queue is started."""
    view = await call.node.admission.holds.put_window(
        call.namespace, call.path("name"), call.path("calendar"), drain=body.drain, reason=body.reason, by=call.caller
    )
    return ok(view)


@delete(
    f"{API}/queues/{{name}}/windows/{{calendar}}", "queues.remove-window",
    access=OPERATE, scope=by_queue, audit=CHANGES, refuses=(NotFound,),
)  # fmt: skip
async def remove_window(call: ApiCall) -> Response:
    """Take a maintenance window away from a queue."""
    await call.node.admission.holds.remove_window(call.namespace, call.path("name"), call.path("calendar"), call.caller)
    return nothing()


@put(
    f"{API}/windows/{{calendar}}", "holds.window", HoldView,
    access=OPERATE, scope=closed, audit=REQUEST, refuses=(NotFound, Conflict),
)  # fmt: skip
async def window_of_all(call: ApiCall, body: WindowBody) -> Response:
    """Make a calendar the maintenance window of all queues: while it is open, nothing is started."""
    view = await call.node.admission.holds.put_window(
        call.namespace, None, call.path("calendar"), drain=body.drain, reason=body.reason, by=call.caller
    )
    return ok(view)


@delete(
    f"{API}/windows/{{calendar}}", "holds.remove-window",
    access=OPERATE, scope=closed, audit=REQUEST, refuses=(NotFound,),
)  # fmt: skip
async def remove_window_of_all(call: ApiCall) -> Response:
    """Take a maintenance window away from all queues."""
    await call.node.admission.holds.remove_window(call.namespace, None, call.path("calendar"), call.caller)
    return nothing()
