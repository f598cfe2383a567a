"""Executions as the API shows them, with their attempts and logs."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Raw, UnsetType, field

from horae.env import Instant
from horae.model.base.instant import format_instant
from horae.model.base.view import Status, Time, View
from horae.model.executions.output.log_level import Level


class ErrorView(View, frozen=True, kw_only=True):
    """The cause of a failed attempt."""

    type: str
    kind: Annotated[str, Meta(description="The class of failure: error, timeout, lost or platform.")] = "error"
    message: str = ""
    traceback: str | UnsetType = ""


class IntervalView(View, frozen=True, kw_only=True):
    """The data interval of an execution, from `start` up to `end`, which is excluded."""

    start: Time
    end: Time


class ExecutionView(View, frozen=True, kw_only=True):
    """One requested run of a job."""

    execution_id: UUID
    job_id: UUID
    job_name: str
    job_version: int
    status: Status
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
    sensitive: bool = False  # params and result are sealed in the store, and shown to few users
    parent: UUID | None = None
    step: str | None = None  # the step of its parent workflow that it runs
    retry_of: UUID | None = None
    rerun_of: UUID | None = None
    retried_as: UUID | None = None  # the replay of this dead letter
    tags: dict[str, str] = {}
    key: str | None = None
    origin: str | None = None  # submit, trigger, fire, event, dependency, backfill, child or retry
    interval: IntervalView | None = None
    upstream: list[UUID] = []  # the executions of other jobs whose end started it
    fire_at: Time | None = None  # the nominal time of its trigger's fire
    backfill_id: UUID | None = None
    event: str | None = None  # the id of the event that started it
    trace_id: str | None = None  # the id of its trace
    reason: str | None = None  # why it waits (delay, retry, paused, ...) or why it ended
    next_attempt_at: Time | None = None
    hint: str | None = None


class AttemptView(View, frozen=True, kw_only=True):
    """One attempt of an execution; `outcome` is running, success, failed, lost, released, preempted or cancelled."""

    attempt: int
    worker_id: str | None
    outcome: str
    started_at: Time | None = None
    ended_at: Time | None = None
    exit_code: int | None = None
    error_message: str | None = None
    error: ErrorView | None = None


class LogLineView(View, frozen=True, kw_only=True):
    """One line of an attempt's log.

    `number` counts all lines of the execution from 1 and never changes; `seq` counts the attempt's lines from 0.
    `stream` is stdout, stderr or log. `level` is the level that the line names, or else the level of its stream.
    """

    number: int
    attempt: int
    seq: int
    at: Time
    stream: str
    level: Level
    text: str


class LogCutView(View, frozen=True, kw_only=True):
    """The missing part of a log that is too long: lines that workers left out, or with `ends`, all further lines."""

    lines: int
    bytes: int
    ends: bool = False
    notice: str


class LogPage(View, frozen=True, kw_only=True):
    """Log lines in order; `nextCursor` requests the lines that follow, also when there are none yet.

    `ended` says that the execution has ended, so that an empty page without `more` is the end of the log. For this
    page, the lines with the numbers `from` to `to` were searched; `more` says that lines follow them. `totalLines` is
    the number of all lines. `unfinishedLines` have the numbers that they get if no other line is finished first.
    """

    items: list[LogLineView]
    next_cursor: str
    ended: bool
    more: bool
    total_lines: int
    from_: int = field(name="from")
    to: int
    truncated: LogCutView | None = None
    unfinished_lines: list[LogLineView] = []


class ExecutionCountsView(View, frozen=True, kw_only=True):
    """The number of executions in each state; ended executions are counted as far back as statistics are stored."""

    waiting: int = 0
    queued: int = 0
    running: int = 0
    success: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0


class CancelView(View, frozen=True, kw_only=True):
    """The result of a cancellation: `cancelled` at once, or `requested` from the worker that runs the execution."""

    outcome: Literal["cancelled", "requested"]
    execution: ExecutionView


def shown_interval(interval: tuple[Instant, Instant] | None) -> IntervalView | None:
    """Format a data interval for the API."""
    return (
        None if interval is None else IntervalView(start=format_instant(interval[0]), end=format_instant(interval[1]))
    )
