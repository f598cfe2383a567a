"""Executions as the API shows them, with their attempts and logs."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Raw, UnsetType, field

from horae.env import Instant
from horae.model.base.instant import format_instant
from horae.model.base.view import Status, Time, View
from horae.model.executions.output.log_level import Level


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
    sensitive: bool = False  # they are sealed in the store, and shown to few
    parent: UUID | None = None
    step: str | None = None  # of the workflow that is its parent
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
    trace_id: str | None = None  # of the trace that it is part of, if it is
    reason: str | None = None  # why it waits (delay, retry, paused, ...) or why it ended
    next_attempt_at: Time | None = None
    hint: str | None = None


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
    """One line that an attempt wrote; `stream` is stdout, stderr or log, `seq` counts an attempt's lines from 0.

    `number` counts all lines of the execution from 1 and never changes. `level` is what the line says of itself, or
    follows from its stream.
    """

    number: int
    attempt: int
    seq: int
    at: Time
    stream: str
    level: Level
    text: str


class CutView(View, frozen=True, kw_only=True):
    """What is missing of a log because it was too much: lines that workers left out, or all beyond its end (`ends`)."""

    lines: int
    bytes: int
    ends: bool = False
    notice: str


class LogPage(View, frozen=True, kw_only=True):
    """Log lines in order; `nextCursor` asks for what follows, also when nothing does yet.

    `ended` says that the execution has ended, so that an empty page without `more` is the end. `lines` is how many
    there are, `from` and `to` the numbers of those that were looked at for this page; `more` says that there are others
    beyond them. `open` are lines that have no end yet, as they stand now, with the numbers that they will have if
    nothing else is written before.
    """

    items: list[LogLineView]
    next_cursor: str
    ended: bool
    more: bool
    lines: int
    from_: int = field(name="from")
    to: int
    truncated: CutView | None = None
    open: list[LogLineView] = []


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


def shown_interval(interval: tuple[Instant, Instant] | None) -> IntervalView | None:
    """A data interval as the API shows it."""
    return (
        None if interval is None else IntervalView(start=format_instant(interval[0]), end=format_instant(interval[1]))
    )
