"""Jobs as the API shows them."""

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
from horae.model.triggers.decisions.preview import warnings
from horae.model.triggers.decisions.values import Trigger
from horae.model.triggers.decisions.when import SCHEDULE
from horae.model.workflows.decisions.naming import calls_of
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.reading.workflow import render_workflow
from horae.store.definitions.job_reads import Activity, JobSnapshot

MOST = 1_000  # versions whose rendering is kept
MOST_BYTES = 4 * 1024 * 1024  # of their definitions as stored; a rendering takes a few times that
MOST_TOLD = 3  # triggers that are described in one line
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


class JobRendering(Struct, frozen=True):
    """A version of a job's definition as it is shown; but for the names of what it depends on, it never changes."""

    spec: Spec
    fields: Mapping[str, Any]
    notes: tuple[str, ...]


def render(spec: Spec) -> JobRendering:
    """A definition as it is shown."""
    notes = []
    if spec.retry.most_tries == 0 and structs.replace(spec.retry, within=None, budgets=Budgets()) != RetryPolicy():
        notes.append(NO_RETRIES)
    own = {} if spec.made is None else {"own": spec.made.own}
    return JobRendering(spec, {**JOB.keywords(render_definition(spec)), **own}, tuple(notes))


class RenderingCache:
    """A cache by job and version; what was not asked for the longest goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[UUID, int], tuple[JobRendering, int]] = OrderedDict()
        self._bytes = 0

    def of(self, job: UUID, version: int, spec: str) -> JobRendering:
        """A version's rendering; `spec` is its definition as it is stored."""
        known = self._kept.get((job, version))
        if known is not None:
            self._kept.move_to_end((job, version))
            return known[0]
        made = render(_read_spec(spec))
        self._kept[job, version] = (made, len(spec))
        self._bytes += len(spec)
        while len(self._kept) > MOST or self._bytes > MOST_BYTES:
            self._bytes -= self._kept.popitem(last=False)[1][1]
        return made


def show_job(job: Job | JobSnapshot, rendering: JobRendering, activity: Activity, names: Mapping[UUID, str]) -> JobView:
    """A job with what it is doing; `names` are those of the jobs it depends on."""
    running, fields = activity.running, rendering.fields
    if names and isinstance(rendering.spec.task, Workflow):
        known = {str(id): name for id, name in names.items()}
        fields = {**fields, "workflow": render_workflow(rendering.spec.task, known)}
    if names:
        conditions = rendering.spec.conditions
        upstream = [render_dependency(names.get(UUID(id), id), id, conditions) for id in rendering.spec.dependencies]
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
    """The ids of the jobs that the steps of a workflow name."""
    return {call.job for _, call in calls_of(spec.task) if call.job} if isinstance(spec.task, Workflow) else set()


_read_spec = msgspec.json.Decoder(Spec).decode
_warnings = lru_cache(4096)(warnings)


@lru_cache(4096)
def _described(trigger: Trigger) -> str:
    return trigger.words


def when_in_words(spec: Spec, triggers: Mapping[str, Trigger]) -> str | None:
    """What fires a job, by the first of its triggers."""
    names = _in_order(spec, triggers)
    told = "; ".join(_described(triggers[name]) for name in names[:MOST_TOLD])
    more = len(names) - MOST_TOLD
    return f"{told}; and {more} more" if more > 0 else told or None


def notes_of(spec: Spec, triggers: Mapping[str, Trigger]) -> list[str]:
    """What to say about a definition, whatever the job is doing."""
    return [*_warned(spec, triggers), *render(spec).notes]


def _warned(spec: Spec, triggers: Mapping[str, Trigger]) -> list[str]:
    """What is probably not meant by a trigger, which is named unless it is the schedule."""
    return [
        warning if name == SCHEDULE else f"{name}: {warning}"
        for name in _in_order(spec, triggers)
        for warning in _warnings(triggers[name])
    ]


def _in_order(spec: Spec, triggers: Mapping[str, Trigger]) -> list[str]:
    """The names of those that are there, as the definition has them."""
    return [name for name in (SCHEDULE, *(one["name"] for one in spec.triggers)) if name in triggers]


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
