"""Which executions and which of their log lines, as addresses say it."""

from typing import Annotated, Literal

from msgspec import Meta

from horae.model.executions.output.log_level import Level
from horae.server.reading.queries import Cursor, JobRef, Paged, Query, QueueName, Since, Text, Until

Tag = Annotated[Text, Meta(description='Only those with this tag: "name" or "name=value".')]
Status = Literal["waiting", "queued", "running", "success", "failed", "cancelled", "skipped", "pending"]


class JobExecutions(Paged, frozen=True, kw_only=True):
    """Which executions of a job."""

    status: Annotated[Status, Meta(description="`pending` means waiting or queued.")] | None = None
    tag: Tag | None = None
    worker: Annotated[Text, Meta(description="Only those that this worker runs or ran.")] | None = None
    since: Since | None = None
    until: Until | None = None


class ExecutionList(JobExecutions, frozen=True, kw_only=True):
    """Which executions."""

    job: JobRef | None = None
    queue: QueueName | None = None
    parent: (
        Annotated[Text, Meta(description="Only those that this execution submitted, or runs as its steps.")] | None
    ) = None


class ArchiveList(Paged, frozen=True, kw_only=True):
    """Which executions of the archive."""

    status: Literal["success", "failed", "cancelled", "skipped"] | None = None
    job: Annotated[Text, Meta(description="A job's name or id, as it was then.")] | None = None
    tag: Tag | None = None
    since: Since | None = None
    until: Until | None = None


LineNumber = Annotated[int, Meta(ge=0, le=2**31 - 1)]
GREP = "Only lines with this text, `*` for anything; or that match the regular expression after `re:`."


class LogLinesOf(Query, frozen=True, kw_only=True):
    """Which log lines."""

    attempt: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    grep: Annotated[str, Meta(min_length=1, max_length=500, description=GREP)] | None = None
    level: Annotated[Level, Meta(description="Only lines of this level, or worse.")] | None = None


class Logs(LogLinesOf, frozen=True, kw_only=True):
    """Which log lines, and from where on."""

    cursor: Cursor | None = None
    tail: Annotated[int, Meta(ge=1, le=10_000, description="Only the last lines: 1 to 10000.")] | None = None
    after: Annotated[LineNumber, Meta(description="Only lines behind the one of this number.")] | None = None
    before: Annotated[LineNumber, Meta(description="The last lines before the one of this number.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000


class LogText(LogLinesOf, frozen=True, kw_only=True):
    """Which log lines, and how they look."""

    times: Annotated[bool, Meta(description="Each line with its time before it.")] = False
