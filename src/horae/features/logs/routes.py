"""Routes of logs: pages of lines, or the whole log as one text."""

from typing import Annotated

from msgspec import Meta

from horae.errors import Gone, NotFound
from horae.features.logs.engine.logs import LineSelection
from horae.features.logs.part import LogsPart
from horae.model.executions.execution_view import LogPage
from horae.model.executions.output.log_level import Level
from horae.server.access import VIEW
from horae.server.call import ApiCall
from horae.server.reading.queries import Cursor, Query
from horae.server.reply import UNCACHED, Response, ok
from horae.server.route import API, get
from horae.server.scopes import by_execution
from horae.server.streaming.download import StreamedContent

LineNumber = Annotated[int, Meta(ge=0, le=2**31 - 1)]
GREP = "Only lines with this text, in which `*` matches anything. With the prefix `re:` it is a regular expression."


class LogLinesOf(Query, frozen=True, kw_only=True):
    """The selection of log lines."""

    attempt: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    grep: Annotated[str, Meta(min_length=1, max_length=500, description=GREP)] | None = None
    level: Annotated[Level, Meta(description="Only lines of at least this level.")] | None = None


class Logs(LogLinesOf, frozen=True, kw_only=True):
    """The selection of log lines, and the page."""

    cursor: Cursor | None = None
    tail: Annotated[int, Meta(ge=1, le=10_000, description="Only the last lines: 1 to 10000.")] | None = None
    after: Annotated[LineNumber, Meta(description="Only lines after the line with this number.")] | None = None
    before: Annotated[LineNumber, Meta(description="The last lines before the line with this number.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000


class LogText(LogLinesOf, frozen=True, kw_only=True):
    """The selection of log lines, and their form."""

    timestamps: Annotated[bool, Meta(description="Each line begins with its time.")] = False


@get(
    f"{API}/executions/{{id}}/logs", "executions.logs", LogPage,
    access=VIEW, scope=by_execution, refuses=(NotFound, Gone),
)  # fmt: skip
async def logs(call: ApiCall, query: Logs) -> Response:
    """Read log lines from the beginning, after a cursor or a number, before a number, or the last lines.

    Logs of running executions can be read, too. In a search, a page may be empty although `more` is true; then read the
    next page.
    """
    page = await call.node.part(LogsPart).logs.read(
        call.namespace, call.id(), _wanted(query), cursor=query.cursor, tail=query.tail, after=query.after,
        before=query.before, limit=query.limit,
    )  # fmt: skip
    return ok(page)


@get(
    f"{API}/executions/{{id}}/logs/download", "executions.download-log", str,
    access=VIEW, scope=by_execution, media="text/plain", refuses=(NotFound, Gone),
)  # fmt: skip
async def download_log(call: ApiCall, query: LogText) -> Response:
    """Read the whole log as one text."""
    text = await call.node.part(LogsPart).logs.text(
        call.namespace, call.id(), _wanted(query), timestamps=query.timestamps
    )
    name = (b"content-disposition", b'attachment; filename="%s.log"' % str(call.id()).encode())
    return StreamedContent(text, b"text/plain; charset=utf-8", headers=(UNCACHED, name))


def _wanted(query: LogLinesOf) -> LineSelection:
    return LineSelection(attempt=query.attempt, grep=query.grep, level=query.level)
