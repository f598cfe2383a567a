"""Views of jobs for the API."""

from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from horae.model.base.instant import format_instant
from horae.model.base.view import shown_time
from horae.model.definitions.job import JOB, Job, JobVersion, Spec
from horae.model.definitions.job_view import JobStatus, JobVersionView, JobView, LastExecution
from horae.model.definitions.reading.dependencies import render_dependency
from horae.model.definitions.reading.write import render_definition
from horae.model.definitions.retry import Budgets, RetryPolicy
from horae.model.triggers.decisions.named_trigger import SCHEDULE
from horae.model.triggers.decisions.preview import warnings
from horae.model.triggers.decisions.values import Trigger
from horae.model.workflows.decisions.naming import calls_of
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.reading.workflow import render_workflow
from horae.store.definitions.job_reads import Activity, JobSnapshot

MOST = 1_000  # cached renderings
MOST_BYTES = 4 * 1024 * 1024  # bytes of the stored definitions of cached renderings, which take a few times as much
MOST_DESCRIBED = 3  # triggers that are described in one line
TROUBLE = (
    "Its schedule cannot be followed: {} It is tried again every minute, and its misfire rule decides about the fires"
    " that it misses until then. Give the job another schedule, or install what is missing."
)
NO_RETRIES = '"retry" says how to try again, but "retries" is 0: nothing is tried again.'


def status_of(state: str, activity: Activity) -> JobStatus:
    """Return the status of a job. The first condition that holds decides."""
    if state == "deleted":
        return "deleted"
    if activity.newest_running is not None:
        return "running"
    if activity.pending:
        return "queued"
    if state == "paused":
        return "paused"
    return "idle" if activity.next_fire_at is None else "scheduled"


class JobRendering(Struct, frozen=True):
    """The rendered definition of a version.

    It never changes, except for the names of other jobs, which are added later.
    """

    spec: Spec
    fields: Mapping[str, Any]
    notes: tuple[str, ...]


def render(spec: Spec) -> JobRendering:
    """Return a definition as it is shown."""
    notes = []
    if spec.retry.most_tries == 0 and structs.replace(spec.retry, within=None, budgets=Budgets()) != RetryPolicy():
        notes.append(NO_RETRIES)
    overrides = {} if spec.made is None else {"overrides": spec.made.own}
    return JobRendering(spec, {**JOB.keywords(render_definition(spec)), **overrides}, tuple(notes))


class RenderingCache:
    """A cache by job and version. The least recently used renderings are removed first."""

    def __init__(self) -> None:
        self._cached: OrderedDict[tuple[UUID, int], tuple[JobRendering, int]] = OrderedDict()
        self._bytes = 0

    def of(self, job: UUID, version: int, spec: str) -> JobRendering:
        """Return the rendering of a version; `spec` is its stored definition."""
        known = self._cached.get((job, version))
        if known is not None:
            self._cached.move_to_end((job, version))
            return known[0]
        rendering = render(_read_spec(spec))
        self._cached[job, version] = (rendering, len(spec))
        self._bytes += len(spec)
        while len(self._cached) > MOST or self._bytes > MOST_BYTES:
            self._bytes -= self._cached.popitem(last=False)[1][1]
        return rendering


def show_job(job: Job | JobSnapshot, rendering: JobRendering, activity: Activity, names: Mapping[UUID, str]) -> JobView:
    """Return the view of a job with its activity; `names` are the names of the jobs it depends on or runs."""
    running, fields = activity.newest_running, rendering.fields
    if names and isinstance(rendering.spec.task, Workflow):
        known = {str(job_id): name for job_id, name in names.items()}
        fields = {**fields, "workflow": render_workflow(rendering.spec.task, known)}
    if names:
        conditions = rendering.spec.conditions
        upstream = [
            render_dependency(names.get(UUID(job_id), job_id), job_id, conditions)
            for job_id in rendering.spec.dependencies
        ]
        fields = {**fields, "dependencies": upstream}
    trouble = [] if activity.trouble is None else [TROUBLE.format(activity.trouble)]
    return JobView(
        job_id=job.id,
        version=job.version,
        state=job.state,
        status=status_of(job.state, activity),
        created_at=format_instant(job.created_at),
        updated_at=format_instant(job.updated_at),
        schedule_text=when_in_words(rendering.spec, activity.triggers),
        next_fire_at=shown_time(activity.next_fire_at),
        last_execution=_last(activity),
        execution_id=running.id if running else None,
        started_at=shown_time(running.started_at) if running else None,
        progress=running.percent if running else None,
        notes=[*trouble, *_warned(rendering.spec, activity.triggers), *rendering.notes],
        **fields,
    )


def runs_of(spec: Spec) -> set[str]:
    """Return the ids of the jobs that the steps of a workflow name."""
    return {call.job for _, call in calls_of(spec.task) if call.job} if isinstance(spec.task, Workflow) else set()


_read_spec = msgspec.json.Decoder(Spec).decode
_warnings = lru_cache(4096)(warnings)


@lru_cache(4096)
def _described(trigger: Trigger) -> str:
    return trigger.words


def when_in_words(spec: Spec, triggers: Mapping[str, Trigger]) -> str | None:
    """Describe the first triggers of a job in one line."""
    names = _in_order(spec, triggers)
    described = "; ".join(_described(triggers[name]) for name in names[:MOST_DESCRIBED])
    more = len(names) - MOST_DESCRIBED
    return f"{described}; and {more} more" if more > 0 else described or None


def notes_of(spec: Spec, triggers: Mapping[str, Trigger]) -> list[str]:
    """Return the notes about a definition that do not depend on the job's activity."""
    return [*_warned(spec, triggers), *render(spec).notes]


def _warned(spec: Spec, triggers: Mapping[str, Trigger]) -> list[str]:
    """Return warnings about triggers that are probably not meant as written.

    Each begins with its trigger's name, unless it is about the schedule.
    """
    return [
        warning if name == SCHEDULE else f"{name}: {warning}"
        for name in _in_order(spec, triggers)
        for warning in _warnings(triggers[name])
    ]


def _in_order(spec: Spec, triggers: Mapping[str, Trigger]) -> list[str]:
    """Return the names of existing triggers, in the order of the definition."""
    return [name for name in (SCHEDULE, *(trigger["name"] for trigger in spec.triggers)) if name in triggers]


def _last(activity: Activity) -> LastExecution | None:
    """Return the newest execution that runs or has ended."""
    running, ended = activity.newest_running, activity.newest_ended
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
    """Return the view of one version of a job."""
    return JobVersionView(
        job_id=version.job,
        version=version.version,
        current=version.version == current,
        created_at=shown_time(version.created_at) or "",
        definition=render_definition(version.spec, {str(job_id): name for job_id, name in names.items()}),
    )
