"""What the API shows: jobs, executions and what lies beside them, as people and programs read them.

camelCase, times as RFC 3339 text, durations as "5m", null until known. A field that is left out of a list because it is
large is absent, never null: read the thing itself to see it.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from horae.env import Instant
from horae.model.definition.diff import Difference
from horae.model.instant import format_instant

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
JobStatus = Literal["running", "queued", "paused", "scheduled", "idle", "deleted"]
T = TypeVar("T")


class View(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something shown."""


class Page(View, Generic[T], frozen=True, kw_only=True):
    """Part of a list; `nextCursor` asks for the next part and is null at the end."""

    items: list[T]
    next_cursor: str | None = None


class LastExecution(View, frozen=True, kw_only=True):
    """A job's newest execution that runs or has ended."""

    execution_id: UUID
    status: str
    started_at: Time | None = None
    completed_at: Time | None = None


class AutoPaused(View, frozen=True, kw_only=True):
    """Why a job's triggers are paused by themselves: so many executions failed in a row, up to this one."""

    at: Time
    failures: int
    execution_id: UUID
    triggers: list[str]


class JobView(View, frozen=True, kw_only=True):
    """A job and its definition.

    `status` is the first that holds of: deleted; running (then `startedAt`, `progress` and `executionId` are those of
    the newest running execution); queued (something is queued, or waits for anything but a delay: a retry, the job's
    resumption); paused; scheduled (it has a next fire); idle.
    """

    job_id: UUID
    name: str
    version: int
    state: str
    status: JobStatus
    created_at: Time
    updated_at: Time
    schedule: Any = None
    triggers: list[dict[str, Any]] = []
    schedule_text: str | None = None
    next_fire_at: Time | None = None
    last_execution: LastExecution | None = None
    execution_id: UUID | None = None
    started_at: Time | None = None
    progress: float | None = None
    description: str = ""
    command: Any | UnsetType = UNSET
    python: Any | UnsetType = UNSET
    http: Any | UnsetType = UNSET
    workflow: Any | UnsetType = UNSET
    owner: str | None = None  # the workflow that keeps it for one of its steps
    base: str | None = None  # the job that such a one was made from
    params: dict[str, Any] = {}
    schema: dict[str, Any] | None = None
    retries: int = 0
    retry: Any = None
    timeout: str | None = None
    timeouts: dict[str, str] = {}
    pause_after: int | None = None
    auto_paused: AutoPaused | None = None
    grace: str = "10s"
    priority: int = 4
    queue: str = "default"
    needs: list[str] = []
    interruptible: bool = True
    preemptible: bool = False
    sensitive: bool = False
    durable: bool = False
    preempts: bool = False
    prefers: list[dict[str, Any]] = []
    slots: int = 1
    resources: dict[str, int] = {}
    affinity: dict[str, str] | None = None
    spread: bool = False
    circuit: dict[str, Any] | None = None
    dependencies: list[str | dict[str, str]] = []
    dependency_timeout: str = "1d"
    on_dependency_timeout: str = "fail"
    tags: dict[str, str] = {}
    env: dict[str, str] = {}
    secrets: list[str] = []
    delivery: str = "at-least-once"
    key_for: str = "1d"
    concurrency: int | None = None
    rate: str | None = None
    burst: int | None = None
    limits: list[dict[str, Any]] = []
    sequence: str | None = None
    unique: dict[str, Any] | None = None
    debounce: dict[str, Any] | None = None
    batch: dict[str, Any] | None = None
    cache: dict[str, Any] | None = None
    template: str | None = None
    with_: Annotated[dict[str, Any], Meta(description="The values of its template's parameters.")] = field(
        default_factory=dict, name="with"
    )
    own: Annotated[dict[str, Any], Meta(description="What it says beyond its template.")] = {}
    notes: list[str] = []


class TriggerView(View, frozen=True, kw_only=True):
    """One of a job's triggers: what it says, and how it stands.

    `state` is active, paused or ended; a trigger of a paused job does not fire either. `definition` is as
    PATCH takes it, `text` says it in words. `nextFireAt` is when it is due next, its place in the `spread` included.
    """

    job_id: UUID
    job: str
    job_state: str
    name: str
    kind: str
    state: str
    text: str
    definition: dict[str, Any]
    next_fire_at: Time | None = None
    fired: int = 0
    last_execution_id: UUID | None = None
    trouble: str | None = None
    valid_from: Time
    version: int


class FireView(View, frozen=True, kw_only=True):
    """A nominal fire and what became of it, or `planned` when it is to come.

    A row of the ledger may stand for a run of fires that met one fate: then `until` is the last of them and `count` how
    many they are. `dueAt` tells when a planned one starts, spread and jitter included.
    """

    at: Time
    until: Time | None = None
    count: int = 1
    due_at: Time | None = None
    job_id: UUID
    job: str
    trigger: str
    disposition: str
    cause: str
    execution_id: UUID | None = None
    decided_at: Time | None = None


class FirePage(View, frozen=True, kw_only=True):
    """Fires in the order of time: those that were decided, then those to come.

    `complete` is false when something had to be left out; `notes` say what.
    """

    items: list[FireView]
    next_cursor: str | None = None
    complete: bool = True
    notes: list[str] = []


class ComingView(View, frozen=True, kw_only=True):
    """A fire to come: its instant, the local time, and what is special about it, as a clock change before it."""

    at: Time
    local: str
    note: str = ""


class PreviewView(View, frozen=True, kw_only=True):
    """When a trigger fires: the instants, the same with local times, and the trigger in words."""

    fires: list[Time]
    text: str
    timezone: str
    details: list[ComingView]
    notes: list[str] = []


class JobVersionView(View, frozen=True, kw_only=True):
    """One version of a job's definition, in the API's spelling."""

    job_id: UUID
    version: int
    current: bool
    created_at: Time
    definition: dict[str, Any]


class JobDiffView(View, frozen=True, kw_only=True):
    """What tells two versions of a job apart: the fields that differ, in the order of a definition's fields."""

    job_id: UUID
    job: str
    before: int
    after: int
    changes: list[Difference]


class ErrorView(View, frozen=True, kw_only=True):
    """Why an attempt failed."""

    type: str
    kind: Annotated[str, Meta(description="The class of failure: error, timeout, lost or platform.")] = "error"
    message: str = ""
    traceback: str | UnsetType = ""


class IntervalView(View, frozen=True, kw_only=True):
    """The data an execution is about, from `start` up to `end`."""

    start: Time
    end: Time


class ExecutionView(View, frozen=True, kw_only=True):
    """One requested run of a job."""

    execution_id: UUID
    job_id: UUID
    job_name: str
    job_version: int
    status: str
    scheduled_at: Time
    queued_at: Time | None = None
    started_at: Time | None = None
    completed_at: Time | None = None
    worker_id: str | None = None
    attempt: int = 0
    retry_count: int = 0
    priority: int = 4
    queue: str | None = None
    progress: float | None = None
    message: str | None = None
    result: Raw | str | UnsetType | None = None
    exit_code: int | None = None
    error_message: str | None = None
    error: ErrorView | None = None
    last_heartbeat: Time | None = None
    params: Raw | str | UnsetType | None = None
    sensitive: bool = False  # they are sealed in the store, and shown to few
    parent: UUID | None = None
    retry_of: UUID | None = None
    rerun_of: UUID | None = None
    retried_as: UUID | None = None  # of a dead letter: what it was run again as
    tags: dict[str, str] = {}
    key: str | None = None
    origin: str | None = None  # submit, trigger, fire, event, dependency, backfill, child or retry
    interval: IntervalView | None = None
    upstream: list[UUID] = []  # the executions because of which it started
    fire_at: Time | None = None  # the nominal fire it stands for
    backfill_id: UUID | None = None
    event: str | None = None  # the id of the event that started it
    reason: str | None = None  # why it waits (delay, retry, paused, ...) or why it ended
    next_attempt_at: Time | None = None
    hint: str | None = None


class PartView(View, frozen=True, kw_only=True):
    """What one upstream has brought to a join: `met`, `unmet` (it ended otherwise), or `pending`."""

    job: str
    condition: str
    state: Literal["met", "unmet", "pending"]
    ended: str | None = None
    execution_id: UUID | None = None


class JoinView(View, frozen=True, kw_only=True):
    """What a job waits for: all of `upstream`, for one data interval where it has one.

    `state` is open, started (then `executionId` was), skipped, or ended; `executionId` of an open one waits for it.
    """

    interval: IntervalView | None = None
    state: str
    execution_id: UUID | None = None
    deadline: Time | None = None
    upstream: list[PartView]


class DependencyView(View, frozen=True, kw_only=True):
    """A job that another depends on; `unused` counts how often it met the condition without an interval since then."""

    job_id: UUID
    job: str
    state: str
    condition: str
    unused: int = 0


class DependenciesView(View, frozen=True, kw_only=True):
    """What a job depends on and what depends on it; the newest joins first."""

    job_id: UUID
    dependencies: list[DependencyView]
    dependents: list[str]
    joins: list[JoinView]
    notes: list[str] = []


class AttemptView(View, frozen=True, kw_only=True):
    """One try of an execution; `outcome` is running, success, failed, lost, released, preempted or cancelled."""

    attempt: int
    worker_id: str | None
    outcome: str
    started_at: Time | None = None
    ended_at: Time | None = None
    exit_code: int | None = None
    error_message: str | None = None
    error: ErrorView | None = None


class LogLineView(View, frozen=True, kw_only=True):
    """One line that an attempt wrote; `stream` is stdout, stderr or log, `seq` counts an attempt's lines from 0."""

    attempt: int
    seq: int
    at: Time
    stream: str
    text: str


class LogPage(View, frozen=True, kw_only=True):
    """Log lines in order; `nextCursor` asks for what follows, also when nothing does yet.

    `ended` says that the execution has ended, so that an empty page is the end.
    """

    items: list[LogLineView]
    next_cursor: str
    ended: bool


class CountsView(View, frozen=True, kw_only=True):
    """How many executions are in each state; ended ones as far back as statistics are kept."""

    waiting: int = 0
    queued: int = 0
    running: int = 0
    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0


class CancelView(View, frozen=True, kw_only=True):
    """What became of a cancellation: `cancelled` at once, or `asked`: the worker has been asked to stop it."""

    verdict: Literal["cancelled", "asked"]
    execution: ExecutionView


class DeadLetterView(View, frozen=True, kw_only=True):
    """A failed execution; `state` is open, retried (then `retriedAs` names the new execution) or discarded."""

    execution: ExecutionView
    state: Literal["open", "retried", "discarded"] = "open"
    retried_as: UUID | None = None
    marked_at: Time | None = None


class DeadLetterGroup(View, frozen=True, kw_only=True):
    """Dead letters of one job that failed alike."""

    job_id: UUID
    job_name: str
    error_type: str
    count: int
    newest_id: UUID
    newest_at: Time
    error_message: str | None = None


class DeadLetterGroups(View, frozen=True, kw_only=True):
    """Groups, largest first; `complete` is false when there are more dead letters than were counted."""

    items: list[DeadLetterGroup]
    complete: bool


class BulkView(View, frozen=True, kw_only=True):
    """What a bulk action did; `more` says that the limit ended it, `nextCursor` in the filter goes on from there."""

    matched: int
    done: int
    skipped: int = 0
    more: bool = False
    next_cursor: str | None = None
    execution_ids: list[UUID] = []
    notes: list[str] = []


def shown_interval(interval: tuple[Instant, Instant] | None) -> IntervalView | None:
    """A data interval as the API shows it."""
    return (
        None if interval is None else IntervalView(start=format_instant(interval[0]), end=format_instant(interval[1]))
    )


def shown_time(at: Instant | None) -> str | None:
    """An instant as the API shows it."""
    return None if at is None else format_instant(at)
