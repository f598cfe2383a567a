"""Routes of artifacts: uploads by workers, and reads by users."""

from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from msgspec import Meta

from horae.engine.parts.optional import ArtifactUpload
from horae.errors import Busy, Conflict, Gone, NotFound, TooLarge
from horae.features.artifacts.model import ArtifactView, show_artifact
from horae.features.artifacts.part import ArtifactsPart
from horae.model.base.ids import execution_id
from horae.model.base.view import Page
from horae.model.executions.output.artifact import DEFAULT_TYPE, Artifact
from horae.server.access import VIEW, WORKER
from horae.server.call import ApiCall
from horae.server.reading.queries import Limit, Paged, Query
from horae.server.reply import Header, Response, ok
from horae.server.route import API, UNRECORDED, get, put
from horae.server.scopes import by_execution, by_session
from horae.server.streaming.download import StreamedContent


class HeldItem(Query, frozen=True, kw_only=True):
    """A running item of a parcel, and the attempt at which the session holds it."""

    parcel: UUID
    item: Annotated[int, Meta(ge=0, le=1023)]
    attempt: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class ArtifactList(Paged, frozen=True, kw_only=True):
    """The page of artifacts to list."""

    limit: Limit = 1000


_SCRIPTS = ("javascript", "ecmascript", "jscript", "livescript")  # words in media types of scripts


@put(
    f"{API}/sessions/{{id}}/artifacts/{{file}}", "sessions.upload", ArtifactView,
    access=WORKER, scope=by_session, audit=UNRECORDED, streams=True, refuses=(NotFound, Conflict, TooLarge, Busy),
    headers={"Content-Type": "The artifact's own media type."},
)  # fmt: skip
async def upload(call: ApiCall, query: HeldItem) -> Response:
    """Store a file of a running item under its name, replacing an earlier one; the body is the content."""
    upload = ArtifactUpload(
        session=call.id(), parcel=query.parcel, item=query.item, attempt=query.attempt, name=call.path("file"),
        type=call.header(b"content-type") or DEFAULT_TYPE,
    )  # fmt: skip
    stored = await call.node.part(ArtifactsPart).artifacts.put(call.namespace, upload, call.pieces())
    return ok(show_artifact(execution_id(query.parcel, query.item), stored))


@get(
    f"{API}/executions/{{id}}/artifacts", "executions.artifacts", Page[ArtifactView],
    access=VIEW, scope=by_execution, refuses=(NotFound, Gone),
)  # fmt: skip
async def list_artifacts(call: ApiCall, query: ArtifactList) -> Response:
    """List the files that an execution left behind, in the order of their names."""
    execution, limit = call.id(), query.limit
    found = await call.node.part(ArtifactsPart).artifacts.list(call.namespace, execution, query.cursor or "", limit + 1)
    items = [show_artifact(execution, artifact) for artifact in found[:limit]]
    return ok(Page(items=items, next_cursor=items[-1].name if len(found) > limit else None))


@get(
    f"{API}/executions/{{id}}/artifacts/{{file}}", "executions.artifact", bytes,
    access=VIEW, scope=by_execution, media=DEFAULT_TYPE, refuses=(NotFound, Gone, Busy),
)  # fmt: skip
async def read(call: ApiCall) -> Response:
    """Read a file that an execution left behind."""
    artifact, pieces = await call.node.part(ArtifactsPart).artifacts.get(call.namespace, call.id(), call.path("file"))
    return StreamedContent(pieces, _kind(artifact.type), _headers(artifact), artifact.size)


def _kind(media_type: str) -> bytes:
    """Return the artifact's media type, or that of plain text for a script.

    The content security policy of the UI allows scripts from this server, but a script that a job wrote must not run.
    """
    is_script = any(word in media_type.lower() for word in _SCRIPTS)
    return b"text/plain; charset=utf-8" if is_script else media_type.encode()


def _headers(artifact: Artifact) -> tuple[Header, ...]:
    """Return headers that make browsers save the file instead of showing it.

    Otherwise an HTML page that a job wrote could act with the permissions of the user who opens it.
    """
    name = quote(artifact.name.rpartition("/")[2], safe="")
    return (
        (b"content-disposition", f"attachment; filename*=UTF-8''{name}".encode()),
        (b"etag", f'"{artifact.sha256}"'.encode()),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", b"sandbox"),
    )
