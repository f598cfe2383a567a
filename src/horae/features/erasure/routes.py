"""Erasures: somebody's data goes, that something ran stays."""

import hashlib
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from horae.errors import NotFound
from horae.features.erasure.model import SELECTION, ErasureSelection, ErasureView
from horae.features.erasure.part import ErasurePart
from horae.model.fields.derived import decoded
from horae.server.access import ADMIN
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reply import Response, ok
from horae.server.route import ACTION, API, post
from horae.server.scopes import closed

if TYPE_CHECKING:
    ErasureWhere = RequestBody
else:
    ErasureWhere = decoded(
        SELECTION.rows,
        "ErasureWhere",
        "Whose data: all that is said must hold, and a tag, a key or params must be among it.",
        RequestBody,
    )


class ErasureBody(RequestBody, frozen=True, kw_only=True):
    """What is to be erased, part by part."""

    where: ErasureWhere
    cursor: Annotated[str, Meta(max_length=512, description="`nextCursor` of the part before.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=1000, description="Executions that are looked at in this part.")] = 500


@post(
    f"{API}/erasures", "erasures.create", ErasureView,
    access=ADMIN, scope=closed, audit=ACTION, repeats="by itself", refuses=(NotFound,),
)  # fmt: skip
async def erase(call: ApiCall, body: ErasureBody) -> Response:
    """Erase params, results, errors, logs, files, tags and keys of executions that have ended, newest first.

    That they ran, when, and how they ended stays. Executions that these submitted are erased with them. Repeat it with
    `nextCursor` until there is none; what is erased already is no longer found. The audit log keeps a receipt of each
    part.
    """
    where = body.where
    which = ErasureSelection(**{name: getattr(where, name) for name in SELECTION.names})
    done = await call.node.part(ErasurePart).erasures.erase(call.namespace, which, body.cursor, body.limit)
    # Whose data it was is not said, but can be proved: the receipt has a fingerprint of what was asked.
    asked = hashlib.sha256(msgspec.json.encode(where)).hexdigest()
    receipt = {"erased": done.erased, "lookedAt": done.looked_at, "live": len(done.live), "where": f"sha256:{asked}"}
    detail = msgspec.json.encode(receipt).decode()
    await call.node.tenancy.audit.note(call.who, call.address, "erasures.receipt", "executions", detail)
    return ok(done)
