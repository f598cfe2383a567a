"""Erasure of namespaces: all data of one, part by part."""

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
    """What of a namespace is to be erased."""

    confirm: Annotated[str, Meta(max_length=128, description="The name of the namespace once more.")]
    cancel: Annotated[bool, Meta(description="Cancel what has not ended, instead of refusing.")] = False
    definitions: Annotated[
        bool, Meta(description="Also jobs, keys, people and all else that is defined, and the namespace itself.")
    ] = False
    before: (
        Annotated[
            str,
            Meta(max_length=80, description="`before` of the first part: what came later is not meant; now otherwise."),
        ]
        | None
    ) = None


@post(
    f"{API}/namespaces/{{name}}/erasure", "namespaces.erase", NamespaceErasureView,
    access=ADMIN, scope=closed, audit=CHANGES, repeats="by itself", refuses=(NotFound, Conflict, Forbidden),
)  # fmt: skip
async def erase(call: ApiCall, body: NamespaceErasure) -> Response:
    """Erase all data of a namespace, for some seconds; repeat it, with the same `before`, until `done`.

    Executions go with their params, results, errors, logs, files, steps and signals, dead letters among them; events,
    keys, kept answers, ended backfills, replays and sessions go, too. Definitions stay unless asked for, and so do
    daily counts and the audit log, which keeps a receipt of each part.
    """
    before = None if body.before is None else parse_instant(body.before, field="before")
    asked = EraseNamespace(confirm=body.confirm, cancel=body.cancel, definitions=body.definitions, before=before)
    done = await call.node.part(ErasurePart).namespace_erasures.erase(call.who, call.path("name"), asked)
    detail = msgspec.json.encode(done).decode()
    target = f"namespaces/{done.namespace}"
    await call.node.tenancy.audit.note(call.who, call.address, "namespaces.receipt", target, detail)
    return ok(done)
