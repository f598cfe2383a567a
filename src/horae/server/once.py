"""Idempotency-Key: a repeated POST is answered as the first time and does nothing again.

The key is reserved before the route runs and its answer kept afterwards. A server that dies in between leaves a
reservation that ends by itself. Submissions do not come here: theirs is part of the submitting transaction.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from msgspec import Struct

from horae.env import SECOND, Micros
from horae.errors import Conflict, KeyReused, StoreUnavailable
from horae.model.base.duration import DAY
from horae.server.call import Call
from horae.server.reply import Reply
from horae.store.executions.entering.submission import Idempotency
from horae.store.tenancy import keys as moves

KEPT_FOR: Micros = DAY
SUBMISSIONS_KEPT_FOR: Micros = 7200 * SECOND
RUNNING_FOR: Micros = 60 * SECOND  # by then a request has ended, or its server has


class Kept(Struct, frozen=True):
    """An answer as it is kept."""

    headers: list[tuple[bytes, bytes]]
    body: bytes


async def once(call: Call, key: str, run: Callable[[], Awaitable[Reply]]) -> Reply:
    """Run a request, or answer with what its first run answered."""
    store, scope = call.node.store, moves.Scope(call.namespace, call.route.name, key)
    now, body = call.node.env.now(), call.fingerprint()
    found = await store.write(lambda: moves.reserve(scope, body, now + RUNNING_FOR, now))
    if isinstance(found, moves.Known):
        return _again(found)
    try:
        reply = await run()
    except BaseException:
        with suppress(StoreUnavailable):  # then the reservation ends by itself
            await store.write(lambda: moves.release(scope, found))
        raise
    until = call.node.env.now() + KEPT_FOR
    answer = msgspec.msgpack.encode(Kept(list(reply.headers), reply.kept or reply.body))
    with suppress(StoreUnavailable):  # what was done is done: a late repetition will be told so by its own check
        await store.write(lambda: moves.keep(scope, found, reply.status, answer, until))
    return reply


def _again(known: moves.Known) -> Reply:
    if not known.same_body:
        raise KeyReused("This Idempotency-Key came with another request before.", "Use a new key for a new request.")
    if known.status is None or known.answer is None:
        raise Conflict("The same request is under way.", "Wait for its answer, then repeat it.", retryAfter=1)
    kept = msgspec.msgpack.decode(known.answer, type=Kept)
    return Reply(known.status, kept.body, headers=kept.headers)


def submission_key(call: Call) -> Idempotency | None:
    """The idempotency of a submission, which the submitter keeps in its own transaction."""
    key = call.idempotency_key()
    if key is None:
        return None
    until = call.node.env.now() + SUBMISSIONS_KEPT_FOR
    return Idempotency(call.namespace, call.route.name, key, call.fingerprint(), until)
