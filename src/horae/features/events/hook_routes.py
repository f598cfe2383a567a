"""Webhooks: create them for triggers, and receive the calls of senders that know the URL and usually sign."""

from typing import TYPE_CHECKING

import msgspec

from horae.errors import BadInput, BadSignature, NotFound, TooLarge
from horae.features.events.model.view import HOOK, HookRequest, HookView, WebhookReceipt
from horae.features.events.part import EventsPart
from horae.model.base.duration import parse_duration
from horae.model.fields.derived import decoded
from horae.model.triggers.events.values import MOST_PAYLOAD
from horae.server.access import EDIT, PUBLIC, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reply import Response, encode, nothing, ok
from horae.server.route import ACTION, API, UNRECORDED, delete, get, post
from horae.server.scopes import by_job, closed

if TYPE_CHECKING:
    HookBody = RequestBody
else:
    HookBody = decoded(HOOK.rows, "HookBody", "The options of a webhook; every field is optional.", RequestBody)


_PATH = f"{API}/jobs/{{ref}}/triggers/{{name}}/webhook"
_SIGNED = {
    "webhook-id": "Standard Webhooks: the message's id, the same if the message is sent again.",
    "webhook-timestamp": "Standard Webhooks: the time of signing in seconds since 1970, at most five minutes old.",
    "webhook-signature": "Standard Webhooks: `v1,` and the signature; several signatures are separated by spaces.",
    "X-Hub-Signature-256": "GitHub's signature of the body, instead of the three headers of Standard Webhooks.",
}


@get(_PATH, "hooks.get", HookView, access=VIEW, scope=by_job, refuses=(NotFound,), secret=True)
async def get_hook(call: ApiCall) -> Response:
    """Read a trigger's webhook, without its URL and secret, which are shown only when they are created."""
    return ok(await call.node.part(EventsPart).hooks.get(call.namespace, call.path("ref"), call.path("name")))


@post(_PATH, "hooks.create", HookView, access=EDIT, scope=by_job, audit=ACTION, status=201, refuses=(NotFound,))
async def make(call: ApiCall, body: HookBody) -> Response:
    """Create a trigger's webhook, or give it a new secret; the old one stays valid for `overlap`.

    URL and secret are shown only in this answer. `newUrl` creates a new URL, too. A webhook without signatures always
    gets a new URL, because its URL is its only secret.
    """
    asked = HookRequest(**{row.attribute: getattr(body, row.attribute) for row in HOOK.rows})
    view = await call.node.part(EventsPart).hooks.create(
        call.namespace, call.path("ref"), call.path("name"), secret=asked.secret, new_url=asked.new_url,
        overlap=parse_duration(asked.overlap, field="overlap"),
    )  # fmt: skip
    reply = ok(view, 201)
    reply.stored_body = encode(msgspec.structs.replace(view, url=msgspec.UNSET, secret=msgspec.UNSET))
    return reply


@delete(_PATH, "hooks.delete", access=EDIT, scope=by_job, audit=ACTION, refuses=(NotFound,))
async def end(call: ApiCall) -> Response:
    """End a trigger's webhook at once."""
    await call.node.part(EventsPart).hooks.delete(call.namespace, call.path("ref"), call.path("name"))
    return nothing()


@post(
    f"{API}/hooks/{{token}}", "hooks.receive", {202: WebhookReceipt, 200: WebhookReceipt},
    access=PUBLIC, scope=closed, audit=UNRECORDED, idempotency="none", headers=_SIGNED, limit=2 * MOST_PAYLOAD,
    refuses=(NotFound, BadSignature, BadInput, TooLarge),
)  # fmt: skip
async def receive(call: ApiCall) -> Response:
    """Call a webhook with any JSON, or with a notification of S3, MinIO or Google Cloud Storage.

    The token in the URL is the credential; the signature proves the sender. A repeated message is answered 200 with
    `repeated` and fires nothing. A signature that is wrong or older than five minutes is refused.
    """
    done = await call.node.part(EventsPart).hooks.receive(call.path("token"), call.headers, call.body)
    return ok(done, 200 if done.repeated else 202)
