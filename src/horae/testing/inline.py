"""The inline runner: one execution of a job, in this process, on a clock that jumps over every wait.

    run = Inline(order, item="piano", price=900)
    run.signal("decision", {"approved": True})
    assert await run.finish() == "receipt 1: 900"

No server, no worker and no waiting: retries, delays and timeouts follow the engine's own rules. The `Inline` object
stores the results of the function's steps. `crash_after=n` simulates a crash of the process right after the n-th result
was stored; the execution continues in its next attempt.
"""

import asyncio
import hashlib
import inspect
import itertools
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from horae.client.workflows.workflow import AppWorkflow
from horae.env import SECOND, Instant, virtual_env
from horae.model.definitions.retry import NoRetry as Ends
from horae.model.executions.job_exceptions import BadResult, Cancelled, ResultTooLarge, Suspended
from horae.model.executions.signal_waits import TIMED_OUT, Signal, first_signal_for, signal_result
from horae.model.fleet.protocol import Awaited
from horae.model.fleet.submit import Submit
from horae.testing.failure_policy import ExecutionRules, TimedOut
from horae.testing.workflows import InlineWorkflow
from horae.worker.code.context import CURRENT, AttemptFacts, Context
from horae.worker.code.durable import CHECKPOINT
from horae.worker.code.execution_requests import (
    ArtifactReceipt,
    ChildReceipt,
    ExecutionRequest,
    ReadServerTime,
    RecallSteps,
    RememberStep,
    ShortSleep,
    SubmitExecutions,
    UploadArtifact,
    WaitForSignal,
)
from horae.worker.holding import ItemOutcome
from horae.worker.runners.outcome import encoded

MOST_ATTEMPTS = 10_000  # an execution that is suspended this often would wait forever


if TYPE_CHECKING:
    from horae.client.views import ExecutionInfo

_numbers = itertools.count()


class Crash(BaseException):
    """The process of this attempt crashed."""


class Waits(Exception):
    """The execution waits, without a timeout, for a signal that was not sent."""


class InlineAttempt(Struct, frozen=True, kw_only=True):
    """The result of one attempt: success, failed, suspended or crashed."""

    outcome: str
    error: BaseException | None = None


class Inline:
    """One execution of a job's function. The results in `kept` survive its attempts.

    For a workflow, `Inline(...)` returns an `InlineWorkflow`, which the real engine runs.
    """

    def __new__(cls, job: Any, /, **about: Any) -> Any:
        if not isinstance(job, AppWorkflow):
            return super().__new__(cls)
        return InlineWorkflow(job, **about)

    def __init__(
        self, job: Any, /, *, crash_after: int | None = None, secrets: Mapping[str, str] | None = None, **params: Any
    ) -> None:
        self._env = virtual_env(seed=next(_numbers))  # each execution has an id of its own
        self._job = job
        self._params = params
        self._secrets = secrets or {}
        self._crash_after = crash_after
        self._began = self._env.now()
        self._now = self._began
        self._judge = ExecutionRules(job, self._began)
        self._signals: list[Signal] = []
        self._deadlines: dict[str, Instant | None] = {}
        self._calls: dict[str, list[ChildReceipt]] = {}
        self.id: UUID = self._env.new_id()
        self.kept: dict[str, Raw] = {}
        self.submitted: list[Submit] = []
        self.artifacts: dict[str, bytes] = {}
        self.attempts: list[InlineAttempt] = []
        self.failures = 0
        self.reason = ""
        self.log: list[str] = []
        self.cancelled = False

    if TYPE_CHECKING:  # an InlineWorkflow has these; type checkers cannot tell the two apart
        states: dict[str, str]
        execution: "ExecutionInfo | None"

        def approve(self, step: str, comment: str = "") -> None: ...

        def reject(self, step: str, comment: str = "") -> None: ...

        def event(self, name: str, payload: Any = None) -> None: ...

    @property
    def slept(self) -> float:
        """Return the seconds that have passed on its clock."""
        return (self._now - self._began) / SECOND

    @property
    def steps(self) -> dict[str, Any]:
        """Return stored step results by name; Horae's own names begin with @."""
        return {name: msgspec.json.decode(result) for name, result in self.kept.items()}

    def signal(self, name: str, payload: Any = None) -> None:
        """Send a signal; the execution takes it when it waits for it."""
        self._signals.append(Signal(id=self._env.new_id(), name=name, payload=msgspec.json.encode(payload)))

    def crash_after(self, count: int) -> None:
        """Simulate a crash after `count` more results were stored."""
        self._crash_after = count

    async def finish(self) -> Any:
        """Run attempts until the execution has ended; return its result, or raise the error with which it failed.

        Failures, timeouts and crashes are retried by the job's own rules; the clock jumps over the waits in between.
        After a failure, `reason` says why there was no further retry. Raises Waits when nothing can wake the execution.
        """
        for _ in range(MOST_ATTEMPTS):
            try:
                return await self.attempt()
            except Suspended:
                await self._check_total()
            except (Waits, Cancelled):
                raise
            except Crash:
                lost = self._judge.after_crash()
                if lost is not None:
                    self.reason = lost.reason
                    raise
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                if _is_stopped():
                    raise
                self._go_on(error)
        raise Waits(f"it was suspended {MOST_ATTEMPTS} times")

    def _go_on(self, error: BaseException) -> None:
        """Move the clock to the next attempt after a failure, or raise the error that ends the execution."""
        decision = self._judge.after_failure(error, self.failures, self._now)
        if isinstance(decision, Ends):
            self.reason = decision.reason
            raise error
        self._now = max(self._now, decision.at)

    async def _check_total(self) -> None:
        """Fail an execution that has waited longer than `timeouts.total`."""
        ends_at = self._judge.rules.ends_at
        if ends_at is not None and self._now >= ends_at:
            self._now = ends_at
            error = TimedOut("total")
            self._failed(error)
            self._go_on(error)

    async def attempt(self) -> Any:
        """Run one attempt. Raises Suspended when it waits, with the clock moved to its wake-up, and Crash."""
        port = _InlinePort(self, self._judge.limit(self._now))
        context = Context(self._facts(), port, self._secrets)
        try:
            result = await self._call(context, port)
            context._check_done()
        except Crash:
            self.attempts.append(InlineAttempt(outcome="crashed"))
            raise
        except Suspended as waits:
            self.attempts.append(InlineAttempt(outcome="suspended"))
            self._wake(waits.wake_at, waits.waits)
            raise
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            port.ended = True
        self.attempts.append(InlineAttempt(outcome="success"))
        return result

    def _failed(self, error: BaseException) -> None:
        self.failures += 1
        self.attempts.append(InlineAttempt(outcome="failed", error=error))

    async def _call(self, context: Context, port: "_InlinePort") -> Any:
        """Call the function. Real time counts, too: a function that hangs is abandoned when its time is over."""
        entry = self._job
        function = getattr(entry, "function", entry)
        bind = entry.signature.binder(entry.definition().get("params", {}))
        args, kwargs = bind(Raw(msgspec.json.encode(self._params)), context)
        CURRENT.set(lambda: context)
        try:
            async with asyncio.timeout(port.seconds_left()) as real:
                if inspect.iscoroutinefunction(inspect.unwrap(function)):
                    result = await function(*args, **kwargs)
                else:
                    result = await asyncio.to_thread(function, *args, **kwargs)
        except BaseException:
            if not (port.timed_out or real.expired()):
                raise
        if port.timed_out or real.expired():
            raise port.time_out() from None
        return _through_json(result)

    def _facts(self) -> AttemptFacts:
        definition: Mapping[str, Any] = self._job.definition()
        return AttemptFacts(
            execution_id=self.id,
            job=self._job.name,
            attempt=len(self.attempts) + 1,
            token=(1 << 32) + len(self.attempts) + 1,
            failures=self.failures,
            scheduled_at=self._began,
            deadline=self._judge.deadline(self._now),
            priority=self._judge.spec.priority,
            tags=self._judge.spec.tags,
            params=Raw(msgspec.json.encode(self._params)),
            defaults=Raw(msgspec.json.encode(definition.get("params", {}))),
            durable=bool(definition.get("durable")),
        )

    def _wake(self, wake_at: Instant | None, waits: tuple[str, ...]) -> None:
        """Move the clock to the wake-up, unless a signal has arrived meanwhile."""
        if any(step not in self._deadlines for step in waits):
            return
        if wake_at is None:
            names = ", ".join(step.removeprefix("@wait:") for step in waits)
            raise Waits(f"it waits for {names}: send it with signal()")
        self._now = max(self._now, wake_at)

    # Requests of the function's port

    def answer(self, ask: ExecutionRequest) -> Any:
        """Return a server's answer to a request."""
        if isinstance(ask, RememberStep):
            return self._keep(ask)
        if isinstance(ask, RecallSteps):
            return dict(self.kept)
        if isinstance(ask, ReadServerTime):
            return self._now
        if isinstance(ask, ShortSleep):
            self._now += ask.span
            return None
        if isinstance(ask, WaitForSignal):
            return self._wait(ask)
        if isinstance(ask, UploadArtifact):
            content = Path(ask.path).read_bytes()
            self.artifacts[ask.name] = content
            digest = hashlib.sha256(content).hexdigest()
            return ArtifactReceipt(name=ask.name, url="", size=len(content), type=ask.media, sha256=digest)
        return self._submit(ask)

    def _keep(self, ask: RememberStep) -> Raw:
        if ask.name not in self.kept or ask.name == CHECKPOINT:
            self.kept[ask.name] = Raw(bytes(ask.result))
            self._count()
        return self.kept[ask.name]

    def _count(self) -> None:
        """Crash when enough results were stored, before the code gets its answer."""
        if self._crash_after is None:
            return
        self._crash_after -= 1
        if self._crash_after == 0:
            self._crash_after = None
            raise Crash

    def _wait(self, ask: WaitForSignal) -> Awaited:
        named = [signal for signal in self._signals if signal.name == ask.signal]
        found = first_signal_for(ask.filter, named)
        begun = None if ask.timeout is None else self._now + ask.timeout
        deadline = self._deadlines.setdefault(ask.step, begun)
        if found is None and (deadline is None or deadline > self._now):
            return Awaited(deadline=deadline)
        if found is not None:
            self._signals.remove(found)
        del self._deadlines[ask.step]
        self.kept[ask.step] = Raw(TIMED_OUT if found is None else signal_result(found))
        self._count()
        return Awaited(result=self.kept[ask.step])

    def _submit(self, ask: SubmitExecutions) -> list[ChildReceipt]:
        known = self._calls.get(ask.call)
        if known is not None:
            return [ChildReceipt(execution_id=one.execution_id, deduplicated=True) for one in known]
        self.submitted += ask.submissions
        self._calls[ask.call] = [ChildReceipt(execution_id=self._env.new_id()) for _ in ask.submissions]
        return self._calls[ask.call]


def _is_stopped() -> bool:
    """Return whether the test itself is being cancelled; the function's own CancelledError is an ordinary failure."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _through_json(value: Any) -> Any:
    """Return a result as a reader of the execution gets it."""
    told = encoded(value)
    if isinstance(told, ItemOutcome) and told.error is not None:
        raise {"ResultTooLarge": ResultTooLarge}.get(told.error.type, BadResult)(told.error.message)
    return msgspec.json.decode(told.result if isinstance(told, ItemOutcome) else told)


class _Stop(BaseException):
    """Leaves a function whose time is over; a BaseException, so that code that handles failures does not catch it."""


class _InlinePort:
    """The function's port to its runner, which answers at once."""

    def __init__(self, run: Inline, limit: tuple[Instant, str] | None) -> None:
        self._run, self._limit = run, limit
        self._crashed = False
        self.timed_out = False
        self.ended = False  # a thread that outlives its attempt gets no more answers

    def seconds_left(self) -> float | None:
        return None if self._limit is None else (self._limit[0] - self._run._now) / SECOND

    def time_out(self) -> TimedOut:
        """Move the clock to the end of the function's time."""
        at, kind = self._limit or (self._run._now, "timeout")
        self._run._now = at
        return TimedOut(kind)

    @property
    def interrupted(self) -> str | None:
        return "cancel" if self._run.cancelled else None

    def heartbeat(self) -> None: ...

    def progress(self, percent: float, message: str) -> None: ...

    def log(self, stream: str, text: str) -> None:
        self._run.log.append(text)

    def hide(self, text: str) -> str:
        return text

    def ask(self, ask: ExecutionRequest) -> "Future[Any]":
        answer: Future[Any] = Future()
        if self._crashed or self.ended:
            raise Crash
        try:
            answer.set_result(self._run.answer(ask))
        except Crash:
            self._crashed = True
            raise
        if self._limit is not None and self._run._now > self._limit[0]:
            self.timed_out = True
            raise _Stop
        return answer
