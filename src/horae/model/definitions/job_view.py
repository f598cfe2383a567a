"""Jobs as the API shows them."""

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta

from horae.model.base.view import Status, Time, Versioned, View
from horae.model.definitions.job import JOB
from horae.model.definitions.reading.diff import Difference
from horae.model.fields.derived import view

JobStatus = Literal["running", "queued", "paused", "scheduled", "idle", "deleted"]


class LastExecution(View, frozen=True, kw_only=True):
    """A job's newest execution that runs or has ended."""

    execution_id: UUID
    status: Status
    started_at: Time | None = None
    completed_at: Time | None = None


class AutomaticPause(View, frozen=True, kw_only=True):
    """The reason that a job, or its triggers, was paused automatically.

    If its triggers were paused because executions failed in a row, `failures` is their number and `executionId` the
    last of them. If the whole job was paused, `reason` says why.
    """

    at: Time
    failures: int = 0
    execution_id: UUID | None = None
    triggers: list[str] = []
    reason: str | None = None


class _Head(View, frozen=True, kw_only=True):
    job_id: UUID
    name: str
    version: int
    state: str
    status: JobStatus
    created_at: Time
    updated_at: Time


if TYPE_CHECKING:  # at run time the fields are derived from the table

    class JobDefinition(_Head, frozen=True, kw_only=True):
        queue: str
else:
    JobDefinition = view(JOB, "JobDefinition", "The fields of a job's definition.", _Head)


class JobView(JobDefinition, Versioned, frozen=True, kw_only=True):
    """A job and its definition.

    `status` is the first that applies: deleted; running (then `startedAt`, `progress` and `executionId` are those of
    the newest running execution); queued (an execution is queued, or waits for anything but a delay, a retry or the
    job's resumption); paused; scheduled (it has a next fire); idle.
    """

    schedule_text: str | None = None
    next_fire_at: Time | None = None
    last_execution: LastExecution | None = None
    execution_id: UUID | None = None
    started_at: Time | None = None
    progress: float | None = None
    auto_paused: AutomaticPause | None = None
    owner_workflow: str | None = None  # the workflow that owns it, for one of its steps
    base_job: str | None = None  # the job from which an owned job was derived
    overrides: Annotated[dict[str, Any], Meta(description="Fields that override those of its template.")] = {}
    notes: list[str] = []


class JobVersionView(View, frozen=True, kw_only=True):
    """One version of a job's definition."""

    job_id: UUID
    version: int
    current: bool
    created_at: Time
    definition: dict[str, Any]
    share: Annotated[float | None, Meta(description="Percentage of new executions, during a rollout.")] = None


class JobPlanView(View, frozen=True, kw_only=True):
    """The result of a dry run: the job's definition, its schedule in words, and the changes."""

    dry_run: Literal[True] = True
    name: str
    version: Annotated[
        int, Meta(description="The version that the job would have; the current version if nothing changes.")
    ]
    schedule_text: str | None = None
    definition: dict[str, Any]
    changes: Annotated[list[Difference], Meta(description="Changes of an existing job.")]
    notes: list[str]


class JobDiffView(View, frozen=True, kw_only=True):
    """The differences between two versions of a job, in the order of a definition's fields."""

    job_id: UUID
    job: str
    before: int
    after: int
    changes: list[Difference]
