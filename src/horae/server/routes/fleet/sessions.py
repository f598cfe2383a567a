"""Sessions: the requests of workers. docs/worker-protocol.md has the whole protocol; its times are in microseconds."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta, structs

from horae.errors import (
    BadInput,
    Conflict,
    Forbidden,
    KeyReused,
    NotFound,
    OverQuota,
    ProtocolMismatch,
    SessionDetached,
    SessionEnded,
    TooLarge,
)
from horae.model.base.view import CompleteList
from horae.model.fleet.protocol import (
    MAX_STEP_NAME,
    Answer,
    Await,
    Awaited,
    Exchange,
    KnownSteps,
    Reattach,
    Reattached,
    Register,
    Registered,
    Remember,
    Remembered,
)
from horae.model.fleet.submit import ChildSubmit
from horae.server.access import WORKER
from horae.server.call import ApiCall
from horae.server.reading.bodies import LARGE_LIMIT
from horae.server.reading.queries import Query
from horae.server.reply import Response, nothing, ok
from horae.server.route import API, UNRECORDED, delete, get, post
from horae.server.routes.executions.submission import SubmissionReceipt, accepted
from horae.server.scopes import Arguments, by_session


class RunningItemQuery(Query, frozen=True, kw_only=True):
    """The running item of which to read the steps."""

    parcel: Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
    item: Annotated[int, Meta(ge=0, le=1023)]
    after: Annotated[str, Meta(max_length=MAX_STEP_NAME, description="Only steps after this name.")] = ""


async def by_queues_served(call: ApiCall, arguments: Arguments) -> None:
    """Check the queues that the worker serves."""
    if call.who.jobs:
        remedy = "Use a key for whole queues: `horae keys create NAME --role worker --queue QUEUE`."
        raise Forbidden("This key is for some jobs only, but a worker executes all jobs of its queues.", remedy)
    body: Register = arguments["body"]
    beyond = sorted({*body.queues} - {*call.who.queues})
    if beyond:
        remedy = f"Start the worker with --queue {' --queue '.join(call.who.queues)}, or with a key for its queues."
        raise Forbidden(f"This key is not for workers of the queues {', '.join(beyond)[:500]}.", remedy)


@post(
    f"{API}/sessions", "sessions.register", Registered,
    access=WORKER, scope=by_queues_served, audit=UNRECORDED, status=201, refuses=(ProtocolMismatch, OverQuota),
)  # fmt: skip
async def register(call: ApiCall, body: Register) -> Response:
    """Register a worker process; the answer has its session and the expected intervals."""
    registered = await call.node.gateway.register(call.namespace, body, call.who.namespace_name, call.who.key)
    known = call.node.base.epochs.installation
    return ok(registered if known is None else structs.replace(registered, installation=known.id), 201)


@post(
    f"{API}/sessions/{{id}}/exchange", "sessions.exchange", Answer,
    access=WORKER, scope=by_session, audit=UNRECORDED, limit=LARGE_LIMIT, idempotency="none", texts=False,
    refuses=(NotFound, SessionEnded, SessionDetached),
)  # fmt: skip
async def exchange(call: ApiCall, body: Exchange) -> Response:
    """Report outcomes and free capacity, receive slices and requests; wait a while if there is nothing to do.

    Exchanges are numbered on each channel. An exchange without an answer is repeated with the same number and body.
    """
    return Response(200, await call.node.gateway.exchange(call.namespace, call.id(), body))


@post(
    f"{API}/sessions/{{id}}/reattach", "sessions.reattach", Reattached,
    access=WORKER, scope=by_session, audit=UNRECORDED, limit=LARGE_LIMIT, idempotency="none",
    refuses=(NotFound, SessionEnded),
)  # fmt: skip
async def reattach(call: ApiCall, body: Reattach) -> Response:
    """Let a session continue after a failover of the store: running executions go on at their attempt."""
    return ok(await call.node.gateway.reattach(call.namespace, call.id(), body))


@post(
    f"{API}/sessions/{{id}}/executions", "sessions.submit", CompleteList[SubmissionReceipt],
    access=WORKER, scope=by_session, audit=UNRECORDED, status=201, limit=LARGE_LIMIT, idempotency="none",
    refuses=(NotFound, Conflict, KeyReused, OverQuota),
)  # fmt: skip
async def submit(call: ApiCall, body: ChildSubmit) -> Response:
    """Submit executions on behalf of a running execution; a repeated `call` returns the same executions."""
    receipts = await call.node.gateway.submit_children(call.namespace, call.id(), body)
    return ok(CompleteList(items=[accepted(receipt) for receipt in receipts]), 201)


@post(
    f"{API}/sessions/{{id}}/steps", "sessions.remember", Remembered,
    access=WORKER, scope=by_session, audit=UNRECORDED, idempotency="none", limit=LARGE_LIMIT,
    refuses=(NotFound, TooLarge),
)  # fmt: skip
async def remember(call: ApiCall, body: Remember) -> Response:
    """Store results of durable steps before the code continues; a step stored before returns its first result."""
    return ok(await call.node.gateway.durable_steps.remember(call.namespace, call.id(), body))


@post(
    f"{API}/sessions/{{id}}/awaits", "sessions.wait", Awaited,
    access=WORKER, scope=by_session, audit=UNRECORDED, idempotency="none", refuses=(NotFound, Conflict),
)  # fmt: skip
async def wait(call: ApiCall, body: Await) -> Response:
    """Let a step of a running item wait for a signal; a received signal, or a timeout, is its result."""
    return ok(await call.node.gateway.durable_steps.wait(call.namespace, call.id(), body))


@get(
    f"{API}/sessions/{{id}}/steps", "sessions.steps", KnownSteps,
    access=WORKER, scope=by_session, refuses=(NotFound, Conflict), secret=True,
)  # fmt: skip
async def steps(call: ApiCall, query: RunningItemQuery) -> Response:
    """Read the durable steps that earlier attempts of a running item have finished, in the order of their names."""
    try:
        parcel = UUID(query.parcel)
    except ValueError:
        raise BadInput(
            f'parcel "{query.parcel[:60]}" is not an id.', "Send the grant's parcel.", field="parcel"
        ) from None
    return ok(await call.node.gateway.durable_steps.known(call.namespace, call.id(), parcel, query.item, query.after))


@delete(
    f"{API}/sessions/{{id}}", "sessions.close",
    access=WORKER, scope=by_session, audit=UNRECORDED, idempotency="none", refuses=(NotFound,),
)  # fmt: skip
async def close(call: ApiCall) -> Response:
    """End a session; other workers take over its remaining work."""
    await call.node.gateway.close(call.namespace, call.id())
    return nothing()
