"""Idempotency-Key: a repeated POST or DELETE gets the first answer while it is stored, and has no further effect."""

from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from horae.engine.tenancy.idempotent_requests import StoredAnswer
from horae.env import SECOND, Micros
from horae.model.base.duration import DAY
from horae.model.executions.submission import Idempotency
from horae.server.call import ApiCall
from horae.server.reply import Response

KEPT_FOR: Micros = DAY
SUBMISSIONS_KEPT_FOR: Micros = 7200 * SECOND


class StoredResponse(Struct, frozen=True):
    """The stored headers and body of an answer."""

    headers: list[tuple[bytes, bytes]]
    body: bytes


async def run_once(call: ApiCall, key: str, run: Callable[[], Awaitable[Response]]) -> Response:
    """Run a request, or return the stored answer of its first run."""
    done = await call.node.tenancy.idempotent_requests.once(_asked(call, key, KEPT_FOR), run, _kept)
    if isinstance(done, Response):
        return done
    content = msgspec.msgpack.decode(done.content, type=StoredResponse)
    return Response(done.status, content.body, headers=content.headers)


def submission_key(call: ApiCall) -> Idempotency | None:
    """Return the idempotency data of a submission, which the submitter stores in the submission's transaction."""
    key = call.idempotency_key()
    return None if key is None else _asked(call, key, SUBMISSIONS_KEPT_FOR)


def _asked(call: ApiCall, key: str, keep: Micros) -> Idempotency:
    return Idempotency(call.namespace, call.route.name, key, call.fingerprint(), call.node.env.now() + keep)


def _kept(reply: Response) -> StoredAnswer:
    return StoredAnswer(
        reply.status, msgspec.msgpack.encode(StoredResponse(list(reply.headers), reply.stored_body or reply.body))
    )
