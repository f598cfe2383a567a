"""The inline runner. It runs one execution of a job in this process, on a clock that jumps over every wait.

    run = Inline(order, item="piano", price=900)
    run.signal("decision", {"approved": True})
    assert await run.finish() == "receipt 1: 900"

It needs no server and no worker. Retries, delays and timeouts follow the engine's own rules. The `Inline` object stores
the results of the function's steps. `crash_after=n` simulates a crash of the process right after the n-th result was
stored; then the execution continues in its next attempt.
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

MOST_ATTEMPTS = 10_000  # an execution with this many attempts is taken to wait for ever


if TYPE_CHECKING:
    from horae.client.views import ExecutionInfo

_numbers = itertools.count()


class Crash(BaseException):
    """A simulated crash of the process that runs an attempt."""


class Waits(Exception):
    """The execution waits for something that will never happen, such as a signal that was not sent."""


class InlineAttempt(Struct, frozen=True, kw_only=True):
    """The end of one attempt."""

    outcome: str  # success, failed, suspended or crashed
    error: BaseException | None = None


class Inline:
    """One execution of a job's function. `kept` has the results of its steps, which later attempts reuse.

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

    # Members of InlineWorkflow. Type checkers take an `Inline(...)` for an Inline even if it is an InlineWorkflow.
    if TYPE_CHECKING:
        states: dict[str, str]
        execution: "ExecutionInfo | None"

        def approve(self, step: str, comment: str = "") -> None: ...

        def reject(self, step: str, comment: str = "") -> None: ...

        def event(self, name: str, payload: Any = None) -> None: ...

    @property
    def slept(self) -> float:
        """Return the seconds that have passed on the execution's clock."""
        return (self._now - self._began) / SECOND

    @property
    def steps(self) -> dict[str, Any]:
        """Return the stored results of steps by name. Names of steps that Horae adds itself begin with @."""
        return {name: msgspec.json.decode(result) for name, result in self.kept.items()}

    def signal(self, name: str, payload: Any = None) -> None:
        """Send a signal; the execution receives it when it waits for a signal with this name."""
        self._signals.append(Signal(id=self._env.new_id(), name=name, payload=msgspec.json.encode(payload)))

    def crash_after(self, count: int) -> None:
        """Simulate a crash after `count` more step results were stored."""
        self._crash_after = count

    async def finish(self) -> Any:
        """Run attempts until the execution has ended; return its result, or raise the error with which it failed.

        Failures, timeouts and crashes are retried by the job's own rules. The clock jumps over the waits between
        attempts. After a failure, `reason` says why there was no further retry. Raises Waits when the execution waits
        for a signal that was not sent, without a timeout.
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
        raise Waits(f"The execution was suspended {MOST_ATTEMPTS} times.")

    def _go_on(self, error: BaseException) -> None:
        """Move the clock to the next attempt after a failure, or raise the error that ends the execution."""
        decision = self._judge.after_failure(error, self.failures, self._now)
        if isinstance(decision, Ends):
            self.reason = decision.reason
            raise error
        self._now = max(self._now, decision.at)

    async def _check_total(self) -> None:
        """Fail a suspended execution whose total time is longer than `timeouts.total` allows."""
        ends_at = self._judge.rules.ends_at
        if ends_at is not None and self._now >= ends_at:
            self._now = ends_at
            error = TimedOut("total")
            self._failed(error)
            self._go_on(error)

    async def attempt(self) -> Any:
        """Run one attempt and return its result.

        Raises Crash for a simulated crash, and Suspended when the execution sleeps or waits. The clock has then been
        moved to the instant at which the execution continues.
        """
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
        """Call the function. Its timeout also counts in real time, so that a function that hangs is abandoned."""
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
        """Move the clock to the instant at which the execution continues, unless a signal arrived meanwhile."""
        if any(step not in self._deadlines for step in waits):
            return
        if wake_at is None:
            names = ", ".join(step.removeprefix("@wait:") for step in waits)
            raise Waits(f"The execution waits for the signal {names}. Send it with signal().")
        self._now = max(self._now, wake_at)

    # Answers to requests that the function makes through its port

    def answer(self, ask: ExecutionRequest) -> Any:
        """Answer a request of the function as a server would."""
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
        """Simulate the crash of `crash_after`, after a result was stored but before the function gets it."""
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
    """Return whether the test itself is being cancelled. Otherwise a CancelledError is the function's own failure."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _through_json(value: Any) -> Any:
    """Encode and decode a result, so that it has the form in which readers of the execution get it."""
    told = encoded(value)
    if isinstance(told, ItemOutcome) and told.error is not None:
        raise {"ResultTooLarge": ResultTooLarge}.get(told.error.type, BadResult)(told.error.message)
    return msgspec.json.decode(told.result if isinstance(told, ItemOutcome) else told)


class _Stop(BaseException):
    """Ends a function whose time is over. It is a BaseException so that the function's own handlers do not catch it."""


class _InlinePort:
    """The object through which the function sends requests to the inline runner, which answers at once."""

    def __init__(self, run: Inline, limit: tuple[Instant, str] | None) -> None:
        self._run, self._limit = run, limit
        self._crashed = False
        self.timed_out = False
        self.ended = False  # when true, a function that still runs in a thread after its attempt gets no more answers

    def seconds_left(self) -> float | None:
        return None if self._limit is None else (self._limit[0] - self._run._now) / SECOND

    def time_out(self) -> TimedOut:
        """Move the clock to the end of the function's time, and return the error for its timeout."""
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
