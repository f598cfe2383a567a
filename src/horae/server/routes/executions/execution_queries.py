"""Which executions, as addresses say it."""

from typing import Annotated, Literal

from msgspec import Meta

from horae.server.reading.queries import JobRef, Paged, QueueName, Since, Text, Until

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
