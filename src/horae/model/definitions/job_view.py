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


class AutoPaused(View, frozen=True, kw_only=True):
    """Why a job is paused by itself: its triggers, because so many executions failed in a row, up to this one; or all
    of it, for a `reason`.
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


if TYPE_CHECKING:  # what Python reads of the fields that are made of the table

    class JobDefinition(_Head, frozen=True, kw_only=True):
        queue: str
else:
    JobDefinition = view(JOB, "JobDefinition", "The fields of a job's definition.", _Head)


class JobView(JobDefinition, Versioned, frozen=True, kw_only=True):
    """A job and its definition.

    `status` is the first that holds of: deleted; running (then `startedAt`, `progress` and `executionId` are those of
    the newest running execution); queued (something is queued, or waits for anything but a delay: a retry, the job's
    resumption); paused; scheduled (it has a next fire); idle.
    """

    schedule_text: str | None = None
    next_fire_at: Time | None = None
    last_execution: LastExecution | None = None
    execution_id: UUID | None = None
    started_at: Time | None = None
    progress: float | None = None
    auto_paused: AutoPaused | None = None
    owner: str | None = None  # the workflow that keeps it for one of its steps
    base: str | None = None  # the job that such a one was made from
    own: Annotated[dict[str, Any], Meta(description="What it says beyond its template.")] = {}
    notes: list[str] = []


class JobVersionView(View, frozen=True, kw_only=True):
    """One version of a job's definition, in the API's spelling."""

    job_id: UUID
    version: int
    current: bool
    created_at: Time
    definition: dict[str, Any]
    share: Annotated[float | None, Meta(description="Percent of new executions, while a rollout shares them out.")] = (
        None
    )


class JobPlanView(View, frozen=True, kw_only=True):
    """What a job would become by a dry run: its definition, in words when it fires, and what that changes."""

    dry_run: Literal[True] = True
    name: str
    version: Annotated[int, Meta(description="The version it would have; the present one if nothing changes.")]
    schedule_text: str | None = None
    definition: dict[str, Any]
    changes: Annotated[list[Difference], Meta(description="What would change of a job that is there.")]
    notes: list[str]


class JobDiffView(View, frozen=True, kw_only=True):
    """What tells two versions of a job apart: the fields that differ, in the order of a definition's fields."""

    job_id: UUID
    job: str
    before: int
    after: int
    changes: list[Difference]
