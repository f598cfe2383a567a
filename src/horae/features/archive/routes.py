"""The archive: executions past their retention, read from its files."""

from typing import Annotated, Literal

from msgspec import Meta, structs

from horae.errors import Busy
from horae.features.archive.model import ArchivePage
from horae.features.archive.part import ArchivePart
from horae.server.access import VIEW
from horae.server.call import ApiCall
from horae.server.reading.queries import Paged, Since, Text, Until
from horae.server.reply import Response, ok
from horae.server.route import API, get
from horae.server.routes.executions.execution_queries import Tag
from horae.server.scopes import closed


class ArchiveList(Paged, frozen=True, kw_only=True):
    """The selection of archived executions."""

    status: Literal["success", "failed", "cancelled", "skipped"] | None = None
    job: Annotated[Text, Meta(description="A job's name or id, as it was then.")] | None = None
    tag: Tag | None = None
    since: Since | None = None
    until: Until | None = None


@get(f"{API}/archive", "executions.archived", ArchivePage, access=VIEW, scope=closed, refuses=(Busy,))
async def archived(call: ApiCall, query: ArchiveList) -> Response:
    """List executions of the archive, the newest files first; a page may be short, even empty, while there is more."""
    page = await call.node.part(ArchivePart).reader.list(
        call.namespace, status=query.status, job=query.job, tag=query.tag, since=query.since, until=query.until,
        limit=query.limit, cursor=query.cursor,
    )  # fmt: skip
    return ok(structs.replace(page, items=[call.node.base.execution_sealer.show(call.who, one) for one in page.items]))
