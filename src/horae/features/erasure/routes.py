"""Routes that erase personal data, while the records of executions stay, or all data of a namespace."""

import hashlib
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from horae.errors import Conflict, Forbidden, NotFound
from horae.features.erasure.model import SELECTION, EraseNamespace, ErasureSelection, ErasureView, NamespaceErasureView
from horae.features.erasure.part import ErasurePart
from horae.model.base.instant import parse_instant
from horae.model.fields.derived import decoded
from horae.server.access import ADMIN
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reply import Response, ok
from horae.server.route import ACTION, API, CHANGES, post
from horae.server.scopes import closed

if TYPE_CHECKING:
    ErasureWhere = RequestBody
else:
    ErasureWhere = decoded(
        SELECTION.rows,
        "ErasureWhere",
        "A selection of executions. All given conditions must hold; a tag, a key or params are required.",
        RequestBody,
    )


class ErasureBody(RequestBody, frozen=True, kw_only=True):
    """A request to erase a selection of executions, part by part."""

    where: ErasureWhere
    cursor: Annotated[str, Meta(max_length=512, description="`nextCursor` of the previous part.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=1000, description="The number of executions to check in this part.")] = 500


@post(
    f"{API}/erasures", "erasures.create", ErasureView,
    access=ADMIN, scope=closed, audit=ACTION, idempotency="none", refuses=(NotFound,),
)  # fmt: skip
async def erase(call: ApiCall, body: ErasureBody) -> Response:
    """Erase params, results, errors, logs, files, tags and keys of executions that have ended, newest first.

    The records of the executions stay, with times and final states. Executions that they submitted are erased, too.
    Repeat the request with `nextCursor` until the answer has none. Executions that are already erased no longer match
    the selection. The audit log gets a receipt of each part.
    """
    where = body.where
    selection = ErasureSelection(**{name: getattr(where, name) for name in SELECTION.names})
    done = await call.node.part(ErasurePart).erasures.erase(call.namespace, selection, body.cursor, body.limit)
    # The receipt must not have data of the person. Its digest of the selection proves what was erased.
    digest = hashlib.sha256(msgspec.json.encode(where)).hexdigest()
    receipt = {
        "erased": done.erased,
        "examined": done.examined,
        "notEnded": len(done.not_ended),
        "where": f"sha256:{digest}",
    }
    detail = msgspec.json.encode(receipt).decode()
    await call.node.tenancy.audit.note(call.who, call.address, "erasures.receipt", "executions", detail)
    return ok(done)


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
    access=ADMIN, scope=closed, audit=CHANGES, idempotency="none", refuses=(NotFound, Conflict, Forbidden),
)  # fmt: skip
async def erase_namespace(call: ApiCall, body: NamespaceErasure) -> Response:
    """Erase a part of a namespace's data, for some seconds; repeat the request with the same `before` until `complete`.

    Executions are deleted with their params, results, errors, logs, files, steps and signals, and dead letters. Events,
    keys, stored answers, ended backfills, replays and sessions are deleted, too. If a file of the archive also has
    executions from after `before`, the records of its older executions stay, without data. Definitions are deleted only
    on request. Daily counts stay, and so does the audit log, which gets a receipt of each part.
    """
    before = None if body.before is None else parse_instant(body.before, field="before")
    request = EraseNamespace(confirm=body.confirm, cancel=body.cancel, definitions=body.definitions, before=before)
    done = await call.node.part(ErasurePart).namespace_erasures.erase(call.who, call.path("name"), request)
    detail = msgspec.json.encode(done).decode()
    target = f"namespaces/{done.namespace}"
    await call.node.tenancy.audit.note(call.who, call.address, "namespaces.receipt", target, detail)
    return ok(done)
