"""The route by which all data of a namespace is erased, part by part."""

from typing import Annotated

import msgspec
from msgspec import Meta

from horae.errors import Conflict, Forbidden, NotFound
from horae.features.erasure.model import EraseNamespace, NamespaceErasureView
from horae.features.erasure.part import ErasurePart
from horae.model.base.instant import parse_instant
from horae.server.access import ADMIN
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reply import Response, ok
from horae.server.route import API, CHANGES, post
from horae.server.scopes import closed


class NamespaceErasure(RequestBody, frozen=True, kw_only=True):
    """A request to erase a namespace."""

    confirm: Annotated[str, Meta(max_length=128, description="The name of the namespace again, as a confirmation.")]
    cancel: Annotated[
        bool, Meta(description="Whether to cancel executions that have not ended; else they make the request fail.")
    ] = False
    definitions: Annotated[
        bool,
        Meta(description="Whether to erase jobs, keys, users and other definitions too, and end the namespace."),
    ] = False
    before: (
        Annotated[
            str,
            Meta(
                max_length=80,
                description="`before` of the first part's answer: only older data is erased. Now by default.",
            ),
        ]
        | None
    ) = None


@post(
    f"{API}/namespaces/{{name}}/erasure", "namespaces.erase", NamespaceErasureView,
    access=ADMIN, scope=closed, audit=CHANGES, repeats="by itself", refuses=(NotFound, Conflict, Forbidden),
)  # fmt: skip
async def erase(call: ApiCall, body: NamespaceErasure) -> Response:
    """Erase a part of a namespace's data, for some seconds; repeat the request with the same `before` until `done`.

    Executions are deleted with their params, results, errors, logs, files, steps and signals, and dead letters. Events,
    keys, stored answers, ended backfills, replays and sessions are deleted, too. Definitions are deleted only on
    request. Daily counts stay, and so does the audit log, which gets a receipt of each part.
    """
    before = None if body.before is None else parse_instant(body.before, field="before")
    request = EraseNamespace(confirm=body.confirm, cancel=body.cancel, definitions=body.definitions, before=before)
    done = await call.node.part(ErasurePart).namespace_erasures.erase(call.who, call.path("name"), request)
    detail = msgspec.json.encode(done).decode()
    target = f"namespaces/{done.namespace}"
    await call.node.tenancy.audit.note(call.who, call.address, "namespaces.receipt", target, detail)
    return ok(done)
