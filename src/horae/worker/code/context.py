"""`ctx`: the object that gives a job's function the facts about its execution, and sends the function's requests.

The same class serves functions on the event loop, in threads and in child processes. Its `ExecutionPort` passes the
requests on to the worker's session.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from horae.env import Instant
from horae.model.base.instant import parse_instant
from horae.model.base.trace import TraceHeaders
from horae.model.executions.bulk_items import is_submission
from horae.model.executions.job_exceptions import Cancelled, GiveUp, Span, micros_of
from horae.model.fields.kinds import Duration, Kind, Moment
from horae.model.fleet.submit import SUBMISSION, Submit
from horae.model.tenancy.secret_refs import SCHEME
from horae.worker.code.artifacts import Content, upload_request
from horae.worker.code.durable import SLEEP, WAIT, Backoff, StepMemory, check_name, check_signal
from horae.worker.code.execution_requests import (
    ArtifactReceipt,
    ChildReceipt,
    ExecutionPort,
    ExecutionRequest,
    SubmitExecutions,
)
from horae.worker.code.sync_context import SyncContext
from horae.worker.code.transactions import Transaction
from horae.worker.processes.scripts import FunctionCall, PendingOperation, Script

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_SECRETS: Mapping[str, str] = {}
# Options of a submission besides its params, by their names in Python.
_SUBMISSION_OPTIONS = {row.keyword: row.kind for row in SUBMISSION.rows if row.field.called and row.field.sdk}


class AttemptFacts(Struct, frozen=True, kw_only=True):
    """Facts about an execution that are known at the start of an attempt."""

    execution_id: UUID
    job: str
    attempt: int
    token: int  # the fencing token
    failures: int  # the failures of earlier attempts
    scheduled_at: Instant  # when the execution was due
    deadline: Instant | None = None
    priority: int = 4
    parent: UUID | None = None
    tags: dict[str, str] = {}
    trace: str | None = None
    trace_state: str | None = None
    interval: tuple[Instant, Instant] | None = None  # the data interval
    upstream: tuple[UUID, ...] = ()  # the executions whose end started this one
    params: Raw = Raw(b"{}")  # as they were submitted
    defaults: Raw = Raw(b"{}")  # the job's own params
    durable: bool = False


class Log:
    """Writes to the execution's log: `ctx.log("text")`, or with a level, as in `ctx.log.warning("%s left", 3)`."""

    def __init__(self, port: ExecutionPort) -> None:
        self._port = port

    def __call__(self, message: object, *args: object) -> None:
        self._write("INFO", message, args)

    def debug(self, message: object, *args: object) -> None:
        self._write("DEBUG", message, args)

    def info(self, message: object, *args: object) -> None:
        self._write("INFO", message, args)

    def warning(self, message: object, *args: object) -> None:
        self._write("WARNING", message, args)

    def error(self, message: object, *args: object) -> None:
        self._write("ERROR", message, args)

    def _write(self, level: str, message: object, args: tuple[object, ...]) -> None:
        self._port.log("log", f"{level} {_formatted(message, args)}")


class Context:
    """A function's view of its execution: facts about it, and requests that the function can make."""

    __horae_context__ = True

    def __init__(self, facts: AttemptFacts, port: ExecutionPort, secrets: Mapping[str, str] = NO_SECRETS) -> None:
        self._facts = facts
        self._secrets = secrets
        self._port = port
        self._calls = 0
        self._not_run: dict[int, str] = {}  # descriptions of operations that were created and not run yet
        self.log = Log(port)
        self._memo = StepMemory(port, attempt=facts.attempt, durable=facts.durable, warn=self.log.warning)
        self.sync = SyncContext(self)

    @property
    def execution_id(self) -> UUID:
        return self._facts.execution_id

    @property
    def job(self) -> str:
        return self._facts.job

    @property
    def attempt(self) -> int:
        return self._facts.attempt

    @property
    def token(self) -> int:
        """Return the fencing token, a number that grows with every attempt.

        Pass it to the systems that the job writes to. They can then refuse a write with a smaller token than they have
        seen, because it comes from an earlier attempt that was presumed dead.
        """
        return self._facts.token

    @property
    def failures(self) -> int:
        """Return the number of earlier failures of this execution."""
        return self._facts.failures

    @property
    def priority(self) -> int:
        return self._facts.priority

    @property
    def parent(self) -> UUID | None:
        return self._facts.parent

    @property
    def tags(self) -> Mapping[str, str]:
        return self._facts.tags

    @property
    def trace(self) -> str | None:
        """Return the W3C trace context of this attempt, if any."""
        return self._facts.trace

    @property
    def trace_state(self) -> str | None:
        """Return the `tracestate` of the trace context, if any."""
        return self._facts.trace_state

    @property
    def scheduled_at(self) -> datetime:
        return _moment(self._facts.scheduled_at)

    @property
    def interval(self) -> tuple[datetime, datetime] | None:
        """Return the data interval of this execution: its start and its end, which is not included.

        Executions that this one submits inherit it.
        """
        interval = self._facts.interval
        return None if interval is None else (_moment(interval[0]), _moment(interval[1]))

    @property
    def upstream(self) -> tuple[UUID, ...]:
        """Return the ids of the executions whose end started this one, if its job depends on other jobs."""
        return self._facts.upstream

    @property
    def deadline(self) -> datetime | None:
        """Return the time by which this attempt must end, if any.

        It is the earliest of three: the end of the attempt's timeout, the end of the total timeout, and the
        execution's own deadline.
        """
        return None if self._facts.deadline is None else _moment(self._facts.deadline)

    @property
    def params(self) -> dict[str, Any]:
        """Return the params as JSON values: the job's own, overridden by the submission's."""
        own = msgspec.json.decode(self._facts.defaults)
        return {**own, **(msgspec.json.decode(self._facts.params) or {})}

    @property
    def cancelled(self) -> bool:
        """Return whether the execution should stop.

        It should if it was cancelled, timed out or preempted, or if its worker is leaving or has lost its session.
        """
        return self._port.interrupted is not None

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled if the execution should stop."""
        if self.cancelled:
            raise Cancelled(f"stopped by request ({self._port.interrupted})")

    def secret(self, name: str) -> str:
        """Return the value of a secret that the job declares in `secrets`.

        In logs, results, errors and progress messages, the worker replaces the value by ***.
        """
        value = self._secrets.get(name.removeprefix(SCHEME))
        if value is None:
            message = f"{self.job} does not declare the secret {name!r}; declare it with @app.job(secrets=[{name!r}])"
            raise LookupError(message)
        return value

    def heartbeat(self) -> None:
        """Report that the execution is alive, for jobs with `timeouts.heartbeat`. Frequent calls are cheap.

        A progress report counts as a heartbeat, too.
        """
        self._port.heartbeat()

    def progress(self, percent: float, message: str = "") -> None:
        """Report the progress of the execution, from 0 to 100."""
        self._port.progress(min(100.0, max(0.0, float(percent))), message)

    async def submit(self, job: Any, params: Mapping[str, Any] | None = None, **how: Any) -> ChildReceipt:
        """Submit an execution of a job, which is given by its name or its function.

        A repetition by a later attempt submits nothing new: the n-th call in an attempt returns the same execution as
        the n-th call in earlier attempts. `how` takes the options of `job.submit`, and `call`, a name that identifies
        this call instead of its number.
        """
        done: list[ChildReceipt] = await self._ask(self._submissions(job, [params or {}], how))
        return done[0]

    async def submit_many(self, job: Any, items: Sequence[Mapping[str, Any]], **how: Any) -> list[ChildReceipt]:
        """Submit an execution for each of the params in `items`, all in one call. Options in `how` apply to all."""
        done: list[ChildReceipt] = await self._ask(self._many(job, items, how))
        return done

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retries: int = 0,
        backoff: Backoff = None,
        **kwargs: Any,
    ) -> PendingOperation:
        """Run a function and remember its result: a later attempt gets the result without running the function again.

        The result is converted to JSON and back, in the first attempt too. A step is identified by its name and by the
        number of times that the name was used before in the attempt. If the function fails, it is repeated in the same
        attempt, up to `retries` times. `backoff` is the wait before a repetition: a span, which doubles each time, or a
        list of spans.
        """
        key = self._memo.key(self._port.hide(check_name(name)))
        return self._pending(
            self._memo.step(key, FunctionCall(function, args, kwargs), retries, backoff), f"step({name!r})"
        )

    def sleep(self, span: Span | None = None, *, until: datetime | str | None = None) -> PendingOperation:
        """Wait for a span or until an instant.

        A sleep of more than a second suspends the execution, which only a durable job can do. It needs no worker while
        it is suspended, so the sleep survives the worker's end.
        """
        if (span is None) == (until is None):
            raise TypeError("sleep takes a span, or until=")
        wait = None if span is None else micros_of(span)
        until_at = None if until is None else _instant(until)
        return self._pending(self._memo.sleep(self._memo.key(SLEEP), wait, until_at), "sleep")

    def wait_for(self, signal: str, *, timeout: Span | None = None, filter: str | None = None) -> PendingOperation:  # noqa: A002
        """Wait for a signal and return its payload. The execution is suspended meanwhile and needs no worker.

        A signal that arrived before this call is received, too. `filter` is an expression that must be true for the
        signal, as in "${signal.payload.amount > 10}". Raises SignalTimeout after `timeout`.
        """
        key = self._memo.key(WAIT + self._port.hide(check_signal(signal)))
        span = None if timeout is None else micros_of(timeout)
        return self._pending(self._memo.wait_for(key, signal, filter, span), f"wait_for({signal!r})")

    def checkpoint(self, state: Any) -> PendingOperation:
        """Store a state for later attempts, at most 64 KiB as JSON. It replaces the previous checkpoint."""
        return self._pending(self._memo.checkpoint(state), "checkpoint")

    def restored(self, default: Any = None) -> PendingOperation:
        """Return the state of the last checkpoint of this or an earlier attempt, or `default` if there is none."""
        return self._pending(self._memo.restored(default), "restored")

    def gather(self, *parts: Any, limit: int | None = None) -> PendingOperation:
        """Run steps concurrently, at most `limit` at once, and return their results in the order of the arguments.

        The result of each step is remembered as soon as it ends. If a step fails, the other steps are still run to
        their end. Then the error of the first failed step, in the order of the arguments, is raised.
        """
        return self._pending(self._memo.gather(parts, limit), "gather")

    async def artifact(self, name: str, content: Content, *, type: str | None = None) -> ArtifactReceipt:  # noqa: A002
        """Store `content`, bytes or the path of a file, as an artifact that readers of the execution can download.

        It replaces an earlier artifact of the same name. `type` is its media type, by default guessed from the name.
        """
        with upload_request(name, content, type) as file:
            kept: ArtifactReceipt = await self._ask(file)
            return kept

    def transaction(self, connection: Any) -> Transaction:
        """Return an object whose steps store their results in your own database, together with their effects.

        The result and the effect of a step are written in one transaction on `connection`, an open connection of
        asyncpg, psycopg or sqlite3.
        """
        return Transaction(connection, self._memo, self._facts.execution_id, self._facts.attempt, self._pending)

    def _pending(self, script: Script[Any], what: str) -> PendingOperation:
        return PendingOperation(self._port, script, self._not_run, what)

    def _check_done(self) -> None:
        """Raise GiveUp if an operation was created and never run: the attempt would wrongly count as a success."""
        for what in self._not_run.values():
            sync = what.partition("(")[0]
            raise GiveUp(f"ctx.{what} was never run: await it, or call ctx.sync.{sync}(...) in a sync function")

    async def _ask(self, ask: ExecutionRequest) -> Any:
        return await asyncio.wrap_future(self._port.ask(ask))

    def _many(self, job: Any, items: Sequence[Mapping[str, Any]], how: dict[str, Any]) -> SubmitExecutions:
        name = getattr(job, "name", job)
        if any(is_submission(item, name) for item in items):
            message = 'items are params; give options as keywords: submit_many(job, [{"a": 1}], tags={...})'
            raise TypeError(message)
        return self._submissions(job, items, how)

    def _submissions(self, job: Any, items: Sequence[Mapping[str, Any]], how: dict[str, Any]) -> SubmitExecutions:
        self._calls += 1
        call = how.pop("call", None) or str(self._calls)
        name = getattr(job, "name", job)
        if unknown := how.keys() - _SUBMISSION_OPTIONS:
            wrong = ", ".join(sorted(unknown))
            raise TypeError(f'give the params as one mapping, submit("{name}", {{...}}), and not as {wrong}=...')
        facts = self._facts
        trace = TraceHeaders(facts.trace, facts.trace_state)
        return SubmitExecutions(call, [_submission(name, item, how, facts.interval, trace) for item in items])


CURRENT: ContextVar[Callable[[], Context | None]] = ContextVar("horae_current")


def current() -> Context:
    """Return the context of the execution that the calling code belongs to. Raises RuntimeError if there is none."""
    context = current_or_none()
    if context is None:
        raise RuntimeError("this code does not run in an execution")
    return context


def current_or_none() -> Context | None:
    """Return the context of the execution that the calling code belongs to, if any."""
    find = CURRENT.get(None)
    return None if find is None else find()


def _formatted(message: object, args: tuple[object, ...]) -> str:
    try:
        return str(message) % args if args else str(message)
    except (TypeError, ValueError):
        return f"{message} {args}"


def _submission(
    job: str,
    params: Mapping[str, Any],
    how: Mapping[str, Any],
    interval: tuple[Instant, Instant] | None,
    trace: TraceHeaders,
) -> Submit:
    options = {name: _spelled(_SUBMISSION_OPTIONS[name], value) for name, value in how.items() if value is not None}
    sent = Raw(msgspec.json.encode(params))
    return Submit(job=job, params=sent, interval=interval, trace=trace.parent, trace_state=trace.state, **options)


def _spelled(kind: Kind, value: Any) -> Any:
    """Convert an option of a submission to the protocol's form. Spans may be timedeltas, and instants datetimes."""
    if isinstance(kind, Duration):
        return micros_of(value)
    return _instant(value) if isinstance(kind, Moment) else value


def _moment(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def _instant(at: datetime | str) -> Instant:
    if isinstance(at, str):
        return parse_instant(at)
    if at.tzinfo is None:
        raise ValueError("a time without a zone is ambiguous; give it tzinfo")
    return (at - _EPOCH) // timedelta(microseconds=1)
