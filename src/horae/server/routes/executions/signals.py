"""Signals and callbacks to waiting executions."""

from typing import Annotated

from msgspec import Meta, Raw

from horae.errors import Conflict, Gone, KeyReused, NotFound, TooLarge
from horae.model.executions.parcel import check_item
from horae.model.executions.signal_waits import SignalView
from horae.model.fleet.protocol import ABSENT, MAX_SIGNAL, MAX_SIGNAL_NAME
from horae.server.access import OPERATE, PUBLIC
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, UNRECORDED, post
from horae.server.scopes import by_execution, closed


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
    access=PUBLIC, scope=closed, audit=UNRECORDED, status=202, repeats="by itself", limit=MAX_SIGNAL,
    refuses=(NotFound, Conflict, TooLarge),
)  # fmt: skip
async def receive_callback(call: ApiCall) -> Response:
    """Receive the call for a waiting step, with any JSON. The token is the credential; only the first call counts."""
    if call.body:
        check_item(b'{"body":' + call.body + b"}", "body")
    return ok(await call.node.workflows.callbacks.receive(call.path("token"), Raw(call.body)), 202)
