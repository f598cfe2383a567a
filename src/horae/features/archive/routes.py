"""The route by which archived executions are listed."""

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
    job: Annotated[Text, Meta(description="The id of a job, or its name when it was archived.")] | None = None
    tag: Tag | None = None
    since: Since | None = None
    until: Until | None = None


@get(f"{API}/archive", "executions.archived", ArchivePage, access=VIEW, scope=closed, refuses=(Busy,))
async def archived(call: ApiCall, query: ArchiveList) -> Response:
    """List archived executions, beginning with the newest files.

    A page may be short or empty although `nextCursor` says that there are more.
    """
    page = await call.node.part(ArchivePart).reader.list(
        call.namespace, status=query.status, job=query.job, tag=query.tag, since=query.since, until=query.until,
        limit=query.limit, cursor=query.cursor,
    )  # fmt: skip
    return ok(structs.replace(page, items=[call.node.base.execution_sealer.show(call.who, one) for one in page.items]))
