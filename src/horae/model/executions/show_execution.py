"""Conversion of stored executions to API views."""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from horae.model.base.trace import root_of, trace_id_of
from horae.model.base.view import shown_time
from horae.model.executions.execution import (
    FAILED,
    QUEUED,
    READS_AS_RUNNING,
    RUNNING,
    SUCCESS,
    WAITING,
    Execution,
    State,
    UnsuccessfulAttempt,
)
from horae.model.executions.execution_view import AttemptView, ErrorView, ExecutionView, shown_interval
from horae.model.fleet.protocol import Failure

RETRY_KEY = "retryOf:"  # prefix of the internal key of a dead letter's replay
MOST_SHOWN = 4 * 1024  # bytes of params or a result that a list shows


def status_of(state: State, reason: str) -> State:
    """Return the state that is shown: an execution that has started and waits without a worker is shown as running."""
    return RUNNING if state == WAITING and reason in READS_AS_RUNNING else state


def retry_count(execution: Execution) -> int:
    """Return the number of retries after the job's own failures. The failure that ended it led to no retry."""
    lost = execution.error is not None and execution.error.type == "WorkerLost"
    ended = execution.state == FAILED and not lost
    return max(0, execution.failures - 1) if ended else execution.failures


def show_execution(
    e: Execution,
    *,
    job_name: str,
    queue: str | None = None,
    hint: str | None = None,
    brief: bool = False,
    traced: bool = False,
) -> ExecutionView:
    """Render an execution; `brief` leaves out large params and results, and tracebacks.

    With `traced`, an execution submitted without a trace is the root of its own trace.
    """
    percent, message = _progress(e)
    waits = e.wake_at is not None and e.completed_at is None
    return ExecutionView(
        execution_id=e.id, job_id=e.job, job_name=job_name, job_version=_version(e), status=e.state,
        scheduled_at=_at(e.due_at), queued_at=shown_time(e.queued_at), started_at=shown_time(e.started_at),
        completed_at=shown_time(e.completed_at), worker_id=e.worker or None, attempt=e.attempt,
        retry_count=retry_count(e), priority=e.priority, queue=queue, progress=percent,
        message=message, result=_sized(e.result, brief), exit_code=e.exit_code,
        error_message=e.error.message if e.error else None, error=show_error(e.error, brief=brief),
        last_heartbeat=shown_time(e.last_seen), params=_sized(e.params, brief), parent=e.parent, step=e.extra.step,
        retry_of=e.extra.retry_of, rerun_of=None if e.extra.rerun is None else e.extra.rerun.of,
        tags=e.extra.tags, key=_key(e.extra.key), origin=e.extra.origin or None,
        interval=shown_interval(e.extra.interval), fire_at=shown_time(e.extra.fire_at),
        backfill_id=e.extra.backfill, upstream=list(e.extra.upstream), event=e.extra.event,
        trace_id=trace_id_of(e.extra.trace) or (root_of(e.id).trace_id if traced else None),
        reason=e.reason or None, next_attempt_at=shown_time(e.wake_at) if waits else None, hint=hint,
    )  # fmt: skip


def _version(e: Execution) -> int:
    """Return the job version; a rerun of a workflow can run another version than its row says."""
    return (e.extra.rerun.version if e.extra.rerun is not None else 0) or e.version


def _at(instant: int) -> str:
    return shown_time(instant) or ""


def _key(key: str | None) -> str | None:
    return None if key is None or key.startswith(RETRY_KEY) else key


def _progress(e: Execution) -> tuple[float | None, str | None]:
    """Return the progress and message of the current or last attempt; none while waiting or queued."""
    if e.state in (WAITING, QUEUED):
        return None, None
    return 100.0 if e.state == SUCCESS else e.percent, e.message or None


def _sized(value: Raw | None, brief: bool) -> Raw | UnsetType | None:
    """Return a value, or UNSET if it is too large to be shown.

    An empty value is not shown either: it stands for a large value, which is stored elsewhere and was not read.
    """
    if value is None:
        return None
    size = len(bytes(value))
    return UNSET if size == 0 or (brief and size > MOST_SHOWN) else value


def show_error(failure: Failure | None, *, brief: bool = False) -> ErrorView | None:
    if failure is None:
        return None
    traceback = UNSET if brief else failure.traceback
    return ErrorView(type=failure.type, kind=failure.kind, message=failure.message, traceback=traceback)


def show_attempt(attempt: UnsuccessfulAttempt) -> AttemptView:
    return AttemptView(
        attempt=attempt.attempt,
        worker_id=attempt.worker or None,
        outcome=attempt.outcome,
        started_at=shown_time(attempt.started_at),
        ended_at=shown_time(attempt.ended_at),
        exit_code=attempt.exit_code,
        error_message=attempt.error.message if attempt.error else None,
        error=show_error(attempt.error),
    )


_read_failure = msgspec.json.Decoder(Failure).decode


def read_failure(text: str | None) -> Failure | None:
    """Decode a stored error."""
    return None if text is None else _read_failure(text)
