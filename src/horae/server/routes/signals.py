"""Signals: what executions that wait are told."""

from typing import Annotated

from msgspec import Meta, Raw

from horae.errors import Conflict, Gone, KeyReused, NotFound, TooLarge
from horae.model.protocol import ABSENT, MAX_SIGNAL_NAME
from horae.model.signal_view import SignalView
from horae.server.bodies import Body
from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, post


class NewSignal(Body, frozen=True, kw_only=True):
    """A signal: a name, and any JSON."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_SIGNAL_NAME, description="What the execution waits for.")]
    payload: Annotated[Raw, Meta(description="What `ctx.wait_for` returns; null unless given.")] = ABSENT


@post(
    f"{API}/executions/{{id}}/signals", "executions.signal", SignalView, status=202,
    refuses=(NotFound, Conflict, Gone, KeyReused, TooLarge),
)  # fmt: skip
async def signal(call: Call, body: NewSignal) -> Reply:
    """Send a signal to an execution that waits for it, or will; one that has ended refuses it."""
    key = call.idempotency_key()
    sent = await call.node.signals.send(call.namespace, call.id(), body.name, body.payload, key)
    return ok(sent, 202)
