"""An execution: one requested run of a job, and its states."""

from collections.abc import Mapping
from typing import Literal
from uuid import UUID

from msgspec import Raw, Struct

from horae.env import Instant
from horae.model.fleet.protocol import Failure

State = Literal["waiting", "queued", "running", "success", "failed", "cancelled", "skipped"]

WAITING: State = "waiting"
QUEUED: State = "queued"
RUNNING: State = "running"
SUCCESS: State = "success"
FAILED: State = "failed"
CANCELLED: State = "cancelled"
SKIPPED: State = "skipped"

TRANSITIONS: Mapping[State, frozenset[State]] = {
    WAITING: frozenset({QUEUED, SUCCESS, FAILED, CANCELLED, SKIPPED}),
    QUEUED: frozenset({RUNNING, WAITING, FAILED, CANCELLED, SKIPPED}),
    RUNNING: frozenset({WAITING, QUEUED, SUCCESS, FAILED, CANCELLED}),
}
STATES: tuple[State, ...] = (WAITING, QUEUED, RUNNING, SUCCESS, FAILED, CANCELLED, SKIPPED)
FINAL: frozenset[State] = frozenset(STATES) - TRANSITIONS.keys()

# Why a slice waits. With one of the last three, an execution has started, so it is shown as running.
WaitReason = Literal[
    "delay",
    "retry",
    "paused",
    "dependency",
    "limit",
    "sequence",
    "rate",
    "overlap",
    "debounce",
    "batch",
    "circuit",
    "children",
    "sleep",
    "signal",
]
READS_AS_RUNNING: frozenset[str] = frozenset({"children", "sleep", "signal"})


class Rerun(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The origin of a rerun: an earlier execution of a workflow, and the step from which the workflow runs again."""

    of: UUID  # the earlier execution
    since: str = ""  # a step, or `failed`; empty: from the beginning
    latest: bool = False  # with the current definitions instead of the original ones
    version: int = 0  # version of the workflow that it runs, if that is not the version in the execution's row
    breakpoints: tuple[str, ...] = ()


class Extra(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The data of one item that may differ from the data of other items in its parcel."""

    trace: str | None = None  # W3C's traceparent
    trace_state: str | None = None  # W3C's tracestate
    origin: str = ""  # submit, trigger, fire, event, dependency, backfill, child, retry, rerun
    caller: str = ""
    tags: dict[str, str] = {}
    key: str | None = None
    trigger: UUID | None = None
    fire_at: Instant | None = None
    interval: tuple[Instant, Instant] | None = None
    retry_of: UUID | None = None
    backfill: UUID | None = None
    event: str | None = None  # the id of the event that started it
    upstream: tuple[UUID, ...] = ()  # the executions of other jobs whose end started it
    propagate: bool = True  # whether its end can start dependent jobs
    rerun: Rerun | None = None
    step: str | None = None  # the step of its parent that it runs
    index: int | None = None  # position of its parcel's first item among all items of the step's foreach

    @property
    def repeats(self) -> bool:
        """Return whether the execution runs an earlier one again, with the params that it ran with."""
        return self.retry_of is not None or self.rerun is not None


class Execution(Struct, frozen=True, kw_only=True):
    """One requested run of a job, retried under the same id until it reaches a final state."""

    id: UUID
    job: UUID
    version: int
    namespace: int
    queue: int
    state: State
    due_at: Instant
    priority: int
    attempt: int = 0  # number of claims so far; it is the fencing token, and `failures` count against the retries
    failures: int = 0
    losses: int = 0
    submitted_at: Instant
    queued_at: Instant | None = None
    started_at: Instant | None = None
    completed_at: Instant | None = None
    wake_at: Instant | None = None
    reason: str = ""  # why it waits, or why it ended
    session: UUID | None = None
    worker: str | None = None
    last_seen: Instant | None = None  # its session's heartbeat
    result: Raw | None = None
    exit_code: int | None = None
    error: Failure | None = None
    params: Raw = Raw(b"null")
    parent: UUID | None = None
    extra: Extra = Extra()
    percent: float | None = None
    message: str = ""


class UnsuccessfulAttempt(Struct, frozen=True, kw_only=True):
    """One attempt that did not succeed."""

    attempt: int
    worker: str
    outcome: str
    started_at: Instant | None
    ended_at: Instant
    exit_code: int | None = None
    error: Failure | None = None
