"""What the client answers with: the API's documents as values.

Fields are those of the API in snake_case; ones that are not known yet are None. `raw` is the whole document as the
server sent it, so what a newer server tells is never lost.
"""

from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

Status = Literal["waiting", "queued", "running", "success", "failed", "cancelled", "skipped"]
FINAL: frozenset[str] = frozenset({"success", "failed", "cancelled", "skipped"})

V = TypeVar("V", bound="ApiDocument")
MOST_SHOWN = 2_000  # characters of a document in its repr


class ApiDocument(Struct, frozen=True, kw_only=True, rename="camel"):
    """One document of the API."""

    raw: dict[str, Any] = {}

    @classmethod
    def of(cls: type[V], document: dict[str, Any]) -> V:
        view: V = msgspec.convert({**document, "raw": document}, cls)
        return view

    def __repr__(self) -> str:
        """Show the fields that have a value; a document without fields of its own shows all of it, within reason."""
        known = {name: getattr(self, name) for name in self.__struct_fields__ if name != "raw"}
        shown = ", ".join(f"{name}={value!r}" for name, value in known.items() if not _is_nothing(name, value))
        if known:
            return f"{type(self).__name__}({shown})"
        text = repr(self.raw)
        return f"{type(self).__name__}({text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + ' ...'})"


def _is_nothing(name: str, value: Any) -> bool:
    """Whether a field says nothing; a result is a user's value, and says what it is."""
    return value is None or (name != "result" and (value is False or value in ("", {}, [], ())))


class ResultPage(list[V]):
    """A list that may go on: `next_cursor` asks for more."""

    next_cursor: str | None = None
    raw: dict[str, Any]


def page_of(kind: type[V], document: dict[str, Any]) -> ResultPage[V]:
    """A list as the API answers it: `{"items": [...], "nextCursor": ...}`."""
    page = ResultPage(kind.of(item) for item in document["items"])
    page.next_cursor = document.get("nextCursor")
    page.raw = document
    return page


class ExecutionError(ApiDocument, frozen=True, kw_only=True):
    """Why an execution or an attempt failed."""

    type: str = ""
    message: str = ""
    traceback: str = ""


class IntervalInfo(ApiDocument, frozen=True, kw_only=True):
    """The data an execution is about, from `start` up to `end`."""

    start: datetime
    end: datetime


class ExecutionInfo(ApiDocument, frozen=True, kw_only=True):
    """One requested run of a job."""

    execution_id: str
    job_id: str | None = None
    job_name: str | None = None
    job_version: int | None = None
    status: str = "queued"
    deduplicated: bool = False  # the submission's key was taken: this is the execution that took it
    cached: bool = False  # it ended before, and its result answers
    batched: bool = False  # it takes in this submission with others
    index: int | None = None  # as the item at this place
    warning: str | None = None  # of its submission: it needs what no worker ever had
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
    origin: str | None = None  # what asked for it: submit, trigger, fire, dependency, ...
    interval: IntervalInfo | None = None  # the data it is about
    upstream: list[str] = []  # the executions because of which it started
    fire_at: datetime | None = None  # the nominal fire it stands for
    backfill_id: str | None = None
    trace_id: str | None = None  # of the trace that it is part of
    fires: list[str] = []  # of a trigger's answer: the jobs that its end may start
    note: str | None = None  # and what it waits for
    reason: str | None = None
    next_attempt_at: datetime | None = None
    hint: str | None = None  # what to do about it, when it needs somebody

    @property
    def id(self) -> str:
        return self.execution_id

    @property
    def is_final(self) -> bool:
        return self.status in FINAL


class Cancellation(ApiDocument, frozen=True, kw_only=True):
    """What became of a cancellation: `cancelled` at once, or `asked`: the worker has been asked to stop it."""

    verdict: str
    execution: ExecutionInfo


class SignalReceipt(ApiDocument, frozen=True, kw_only=True):
    """A signal that was taken: `delivered` to a step that waited for it, or kept for one that will."""

    execution_id: str
    name: str
    delivered: bool


class FailedStep(ApiDocument, frozen=True, kw_only=True):
    """A step that failed, of a workflow that did."""

    step: str
    execution_id: str | None = None
    error: ExecutionError | None = None


class DeadLetter(ApiDocument, frozen=True, kw_only=True):
    """An execution that failed for good; open until it is retried (as `retried_as`) or discarded.

    A failed workflow is one letter with the `steps` that failed; a retry goes on from these.
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
    """What a bulk action did; `more` says that its limit ended it, and `cursor=next_cursor` goes on from there."""

    matched: int = 0
    done: int = 0
    skipped: int = 0
    more: bool = False
    next_cursor: str | None = None
    execution_ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class ReplayInfo(ApiDocument, frozen=True, kw_only=True):
    """Dead letters that are run again at a pace, and how far that is."""

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
    """What became of one document of an apply."""

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
    """One version of a job's definition, as the API spells it."""

    job_id: str
    version: int
    current: bool = False
    created_at: datetime | None = None
    definition: dict[str, Any] = {}


class JobPlan(ApiDocument, frozen=True, kw_only=True):
    """What a job would become; `changes` has the fields that differ from what it is."""

    name: str
    version: int
    schedule_text: str | None = None
    definition: dict[str, Any] = {}
    changes: list[dict[str, Any]] = []
    notes: list[str] = []


class JobStatisticsInfo(ApiDocument, frozen=True, kw_only=True):
    """What became of a job's executions in a window; times in seconds, `series` is in `raw`."""

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
    wait_p50: float | None = None  # in the queue, before the start
    wait_p95: float | None = None


class AttemptInfo(ApiDocument, frozen=True, kw_only=True):
    """One try of an execution."""

    attempt: int
    worker_id: str | None = None
    outcome: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    error_message: str | None = None
    error: ExecutionError | None = None


class ArtifactInfo(ApiDocument, frozen=True, kw_only=True):
    """A file that an execution left behind."""

    name: str
    url: str
    size: int
    type: str
    sha256: str
    attempt: int
    created_at: datetime


class LogLine(ApiDocument, frozen=True, kw_only=True):
    """One line an attempt wrote."""

    at: datetime | None = None
    stream: str = "log"
    text: str = ""
    attempt: int | None = None
    seq: int | None = None
    number: int | None = None  # of all lines of the execution, from 1
    level: str = "info"


class WorkerInfo(ApiDocument, frozen=True, kw_only=True):
    """A process that executes."""

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
    """How a queue stands: times in seconds, rates in executions per second."""

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
    """How many things of a kind, and of a job, came to be in a state."""

    kind: str = ""
    state: str = ""
    job_id: str | None = None
    count: int = 1


class StreamEvent(ApiDocument, frozen=True, kw_only=True):
    """Something happened to a thing; a hint to look, not a record."""

    kind: str = ""
    id: str | None = None
    state: str | None = None
    at: datetime | None = None
    job_id: str | None = None
    count: int = 1
    changes: list[StateCount] = []  # of an event `changes`


class HealthInfo(ApiDocument, frozen=True, kw_only=True):
    """How a server is; `clock_offset` is how far its clock is ahead of this machine's, in microseconds."""

    status: str = ""
    version: str = ""
    clock_offset: int | None = None


class SubmittedItem(Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one item of a bulk submission: an execution, or the reason why there is none."""

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
