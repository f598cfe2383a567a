"""The answers of the client: the API's documents as values.

Fields are those of the API in snake_case; absent ones are None. `raw` is the whole document as the server sent it, so
fields of a newer server are never lost.
"""

from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from horae.client.problems import not_horae

Status = Literal["waiting", "queued", "running", "success", "failed", "cancelled", "skipped"]
FINAL: frozenset[str] = frozenset({"success", "failed", "cancelled", "skipped"})

V = TypeVar("V", bound="ApiDocument")
MOST_SHOWN = 2_000  # characters of a document in its repr


class ApiDocument(Struct, frozen=True, kw_only=True, rename="camel"):
    """One document of the API."""

    raw: dict[str, Any] = {}

    @classmethod
    def of(cls: type[V], document: dict[str, Any]) -> V:
        try:
            view: V = msgspec.convert({**document, "raw": document}, cls)
        except (msgspec.ValidationError, TypeError) as error:
            raise not_horae() from error
        return view

    def __repr__(self) -> str:
        """Show the fields that have a value; without declared fields, show the raw content, cut to a limit."""
        known = {name: getattr(self, name) for name in self.__struct_fields__ if name != "raw"}
        shown = ", ".join(f"{name}={value!r}" for name, value in known.items() if not _is_nothing(name, value))
        if known:
            return f"{type(self).__name__}({shown})"
        text = repr(self.raw)
        return f"{type(self).__name__}({text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + ' ...'})"


def _is_nothing(name: str, value: Any) -> bool:
    """Tell whether a field is empty. A result is empty only if it is None: other values are the user's own."""
    return value is None or (name != "result" and (value is False or value in ("", {}, [], ())))


class ResultPage(list[V]):
    """One page of a list; `next_cursor` is the cursor of the next page."""

    next_cursor: str | None = None
    raw: dict[str, Any]


def page_of(kind: type[V], document: dict[str, Any]) -> ResultPage[V]:
    """Return a list in an answer of the API: `{"items": [...], "nextCursor": ...}`."""
    try:
        items = document["items"]
    except (KeyError, TypeError) as error:
        raise not_horae() from error
    page = ResultPage(kind.of(item) for item in items)
    page.next_cursor = document.get("nextCursor")
    page.raw = document
    return page


class ExecutionError(ApiDocument, frozen=True, kw_only=True):
    """The reason why an execution or an attempt failed."""

    type: str = ""
    message: str = ""
    traceback: str = ""


class IntervalInfo(ApiDocument, frozen=True, kw_only=True):
    """The data interval of an execution, from `start` up to `end`."""

    start: datetime
    end: datetime


class ExecutionInfo(ApiDocument, frozen=True, kw_only=True):
    """One requested run of a job."""

    execution_id: str
    job_id: str | None = None
    job_name: str | None = None
    job_version: int | None = None
    status: str = "queued"
    deduplicated: bool = False  # the submission's key was taken: this is the existing execution
    cached: bool = False  # an execution that had ended before, whose result answers the submission
    batched: bool = False  # this submission became one of its items
    index: int | None = None  # the position of that item
    warning: str | None = None  # the submission's warning: it needs labels that no worker ever had
    scheduled_at: datetime | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    worker_id: str | None = None
    attempt: int | None = None
    retry_count: int | None = None
    priority: int | None = None
    queue: str | None = None
    progress: float | None = None
    message: str | None = None
    params: Any = None
    result: Any = None
    exit_code: int | None = None
    error_message: str | None = None
    error: ExecutionError | None = None
    last_heartbeat: datetime | None = None
    parent: str | None = None
    step: str | None = None
    retry_of: str | None = None
    rerun_of: str | None = None
    tags: dict[str, str] = {}
    key: str | None = None
    origin: str | None = None  # its creator: submit, trigger, fire, dependency, ...
    interval: IntervalInfo | None = None  # its data interval
    upstream: list[str] = []  # the executions that caused its start
    fire_at: datetime | None = None  # its nominal fire time
    backfill_id: str | None = None
    trace_id: str | None = None  # its trace
    fires: list[str] = []  # in the answer of `jobs.trigger`: the jobs that its end may start
    note: str | None = None  # in the answer of `jobs.trigger`: the effect of its options on dependencies
    reason: str | None = None
    next_attempt_at: datetime | None = None
    hint: str | None = None  # a remedy if it needs a user's action

    @property
    def id(self) -> str:
        return self.execution_id

    @property
    def is_final(self) -> bool:
        return self.status in FINAL


class Cancellation(ApiDocument, frozen=True, kw_only=True):
    """The result of a cancellation: `cancelled`, or `requested` if the worker was asked to stop it."""

    outcome: str
    execution: ExecutionInfo


class SignalReceipt(ApiDocument, frozen=True, kw_only=True):
    """A signal: `delivered` to a waiting step, or stored for a later one."""

    execution_id: str
    name: str
    delivered: bool


class FailedStep(ApiDocument, frozen=True, kw_only=True):
    """A failed step of a failed workflow."""

    step: str
    execution_id: str | None = None
    error: ExecutionError | None = None


class DeadLetter(ApiDocument, frozen=True, kw_only=True):
    """An execution that failed finally; it is open until it is retried (as `retried_as`) or discarded.

    A failed workflow is one dead letter with the `steps` that failed; a retry continues from these.
    """

    execution: ExecutionInfo
    state: str = "open"
    retried_as: str | None = None
    steps: list[FailedStep] = []
    marked_at: datetime | None = None

    @property
    def id(self) -> str:
        return self.execution.execution_id


class BulkResult(ApiDocument, frozen=True, kw_only=True):
    """The result of a bulk action. If it stopped at its limit, `more` is true: continue with `cursor=next_cursor`."""

    matched: int = 0
    done: int = 0
    skipped: int = 0
    more: bool = False
    next_cursor: str | None = None
    execution_ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class ReplayInfo(ApiDocument, frozen=True, kw_only=True):
    """A replay of dead letters at a limited rate, with its progress."""

    replay_id: str
    state: str
    rate: str | None = None
    total: int | None = None
    matched: int = 0
    retried: int = 0
    skipped: int = 0
    note: str = ""
    created_at: datetime | None = None
    completed_at: datetime | None = None

    @property
    def id(self) -> str:
        return self.replay_id


class AppliedDocument(ApiDocument, frozen=True, kw_only=True):
    """The result for one document of an apply."""

    kind: str
    name: str
    outcome: str
    version: int
    job_id: str | None = None
    changes: list[Any] = []
    affected: list[str] = []


class JobInfo(ApiDocument, frozen=True, kw_only=True):
    """A named, versioned definition; the definition itself is in `raw`."""

    job_id: str
    name: str = ""
    version: int | None = None
    state: str | None = None
    status: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    schedule: Any = None
    next_fire_at: datetime | None = None
    last_execution: Any = None

    @property
    def id(self) -> str:
        return self.job_id


class JobVersionInfo(ApiDocument, frozen=True, kw_only=True):
    """One version of a job's definition, in the API's form."""

    job_id: str
    version: int
    current: bool = False
    created_at: datetime | None = None
    definition: dict[str, Any] = {}


class JobPlan(ApiDocument, frozen=True, kw_only=True):
    """The result of a dry run of a job; `changes` has the fields that differ from the present version."""

    name: str
    version: int
    schedule_text: str | None = None
    definition: dict[str, Any] = {}
    changes: list[dict[str, Any]] = []
    notes: list[str] = []


class JobStatisticsInfo(ApiDocument, frozen=True, kw_only=True):
    """Statistics of a job's executions in a window; times in seconds, `series` is in `raw`."""

    executions: int
    success: int
    failed: int
    cancelled: int
    skipped: int
    retried: int
    lost: int
    success_rate: float | None = None
    retry_rate: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    mean: float | None = None
    wait_p50: float | None = None  # the time in the queue before the start
    wait_p95: float | None = None


class AttemptInfo(ApiDocument, frozen=True, kw_only=True):
    """One attempt of an execution."""

    attempt: int
    worker_id: str | None = None
    outcome: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    error_message: str | None = None
    error: ExecutionError | None = None


class ArtifactInfo(ApiDocument, frozen=True, kw_only=True):
    """A file that an execution stored."""

    name: str
    url: str
    size: int
    type: str
    sha256: str
    attempt: int
    created_at: datetime


class LogLine(ApiDocument, frozen=True, kw_only=True):
    """One line in the log of an attempt."""

    at: datetime | None = None
    stream: str = "log"
    text: str = ""
    attempt: int | None = None
    seq: int | None = None
    number: int | None = None  # among all lines of the execution, from 1
    level: str = "info"


class WorkerInfo(ApiDocument, frozen=True, kw_only=True):
    """A worker process."""

    worker_id: str
    session_id: str | None = None
    status: str | None = None
    host: str | None = None
    version: str | None = None
    labels: dict[str, str] = {}
    capacity: int | None = None
    running: int | None = None
    resources: dict[str, int] = {}
    used: dict[str, int] = {}
    started_at: datetime | None = None
    last_heartbeat: datetime | None = None


class AutoscaleSignals(ApiDocument, frozen=True, kw_only=True):
    """The load of a queue: times in seconds, rates in executions per second."""

    queue: str
    backlog: int
    running: int
    oldest_age: float
    arrival_rate: float
    service_rate: float
    duration: float | None = None
    utilisation: float
    workers: int
    slots: int
    desired_workers: int


class StateCount(ApiDocument, frozen=True, kw_only=True):
    """The number of objects of a kind that changed to a state; for executions, of one job."""

    kind: str = ""
    state: str = ""
    job_id: str | None = None
    count: int = 1


class StreamEvent(ApiDocument, frozen=True, kw_only=True):
    """An event of an object: a hint to read it, not a record."""

    kind: str = ""
    id: str | None = None
    state: str | None = None
    at: datetime | None = None
    job_id: str | None = None
    count: int = 1
    changes: list[StateCount] = []  # the counts in an event `changes`


class HealthInfo(ApiDocument, frozen=True, kw_only=True):
    """The health of a server; `clock_offset` is the lead of its clock over this machine's, in microseconds."""

    status: str = ""
    version: str = ""
    clock_offset: int | None = None


class SubmittedItem(Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of one item of a bulk submission: an execution, or the error that refused it."""

    execution_id: str | None = None
    status: str | None = None
    deduplicated: bool = False
    cached: bool = False
    batched: bool = False
    index: int | None = None
    error: dict[str, Any] | None = None

    @property
    def id(self) -> str | None:
        return self.execution_id
