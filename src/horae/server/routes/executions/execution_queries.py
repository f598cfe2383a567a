"""Selections of executions in query strings."""

from typing import Annotated, Literal

from msgspec import Meta

from horae.server.reading.queries import JobRef, Paged, QueueName, Since, Text, Until

Tag = Annotated[Text, Meta(description='Only executions with this tag: "name" or "name=value".')]
Status = Literal["waiting", "queued", "running", "success", "failed", "cancelled", "skipped", "pending"]


class JobExecutions(Paged, frozen=True, kw_only=True):
    """The selection of a job's executions."""

    status: Annotated[Status, Meta(description="`pending` means waiting or queued.")] | None = None
    tag: Tag | None = None
    worker: Annotated[Text, Meta(description="Only executions that this worker runs or ran.")] | None = None
    since: Since | None = None
    until: Until | None = None


class ExecutionList(JobExecutions, frozen=True, kw_only=True):
    """The selection of executions."""

    job: JobRef | None = None
    queue: QueueName | None = None
    parent: (
        Annotated[Text, Meta(description="Only executions that this execution submitted, or runs as steps.")] | None
    ) = None
