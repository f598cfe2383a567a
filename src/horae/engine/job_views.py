"""Jobs as the API shows them."""

from collections.abc import Mapping
from uuid import UUID

from horae.model.definition import render_definition
from horae.model.job import JobVersion
from horae.model.retry import RetryPolicy
from horae.model.show import as_fields
from horae.model.trigger import describe
from horae.model.view import JobStatus, JobVersionView, JobView, LastExecution, shown_time
from horae.store.moves.job_reads import Activity
from horae.store.moves.jobs import StoredJob

DEPENDENCIES = (
    "Dependencies are checked, stored and shown, and start acting in a later release; until then this job runs by its"
    " own schedule and triggers alone."
)
TROUBLE = (
    "Its schedule cannot be followed: {} It is tried again every minute, and what it misses until then falls under its"
    " misfire rule. Give the job another schedule, or install what is missing."
)
NO_RETRIES = '"retry" says how to try again, but "retries" is 0: nothing is tried again.'


def status_of(state: str, activity: Activity) -> JobStatus:
    """The one table: the first that holds."""
    if state == "deleted":
        return "deleted"
    if activity.running is not None:
        return "running"
    if activity.pending:
        return "queued"
    if state == "paused":
        return "paused"
    return "idle" if activity.next_fire_at is None else "scheduled"


def show_job(
    stored: StoredJob, activity: Activity, names: Mapping[UUID, str], notes: list[str] | None = None
) -> JobView:
    """A job with what it is doing; `names` are those of the jobs it depends on."""
    job, running = stored.job, activity.running
    fields = as_fields(render_definition(job.spec, {str(id): name for id, name in names.items()}))
    return JobView(
        job_id=job.id,
        version=job.version,
        state=job.state,
        status=status_of(job.state, activity),
        created_at=shown_time(job.created_at) or "",
        updated_at=shown_time(job.updated_at) or "",
        schedule_text=None if activity.trigger is None else describe(activity.trigger),
        next_fire_at=shown_time(activity.next_fire_at),
        last_execution=_last(activity),
        execution_id=running.id if running else None,
        started_at=shown_time(running.started_at) if running else None,
        progress=running.percent if running else None,
        notes=[*(notes or []), *_notes(stored, activity)],
        **fields,
    )


def _notes(stored: StoredJob, activity: Activity) -> list[str]:
    spec = stored.job.spec
    notes = [] if activity.trouble is None else [TROUBLE.format(activity.trouble)]
    if spec.dependencies:
        notes.append(DEPENDENCIES)
    if spec.retry.retries == 0 and spec.retry != RetryPolicy():
        notes.append(NO_RETRIES)
    return notes


def _last(activity: Activity) -> LastExecution | None:
    """The newest that runs or has ended."""
    running, ended = activity.running, activity.ended
    if running is not None and (ended is None or running.id > ended.id):
        return LastExecution(execution_id=running.id, status="running", started_at=shown_time(running.started_at))
    if ended is None:
        return None
    return LastExecution(
        execution_id=ended.id,
        status=ended.state,
        started_at=shown_time(ended.started_at),
        completed_at=shown_time(ended.completed_at),
    )


def show_version(version: JobVersion, current: int, names: Mapping[UUID, str]) -> JobVersionView:
    """One version of a job's definition."""
    return JobVersionView(
        job_id=version.job,
        version=version.version,
        current=version.version == current,
        created_at=shown_time(version.created_at) or "",
        definition=render_definition(version.spec, {str(id): name for id, name in names.items()}),
    )
