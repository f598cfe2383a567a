"""The inline runner: one execution of a job, here and now, on a clock that jumps over every wait.

    run = Inline(order, item="piano", price=900)
    run.signal("decision", {"approved": True})
    assert await run.finish() == "receipt 1: 900"

No server, no worker and no waiting; what the function remembers lies in this object. `crash_after=n` lets the process
die, as it were, right after the n-th thing was remembered; the execution goes on in its next attempt.
"""

import asyncio
import hashlib
import inspect
import itertools
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from horae.env import SECOND, Instant, virtual_env
from horae.model.awaits import TIMED_OUT, Signal, first_for, taken
from horae.model.protocol import Awaited, Submit
from horae.model.signals import Cancelled, GiveUp, Suspended
from horae.worker.asks import Ask, Bring, Keep, Kept, Nap, Now, Recall, Submissions, Submitted, WaitFor
from horae.worker.context import CURRENT, Context, Facts
from horae.worker.durable import CHECKPOINT

MOST_ATTEMPTS = 10_000  # one that is suspended so often waits for nothing


_numbers = itertools.count()


class Crash(BaseException):
    """The process of this attempt is gone."""


class Waits(Exception):
    """The execution waits for a signal that nobody has sent, and for as long as it takes."""


class Attempt(Struct, frozen=True, kw_only=True):
    """How one attempt ended: success, failed, suspended or crashed."""

    outcome: str
    error: BaseException | None = None


class Inline:
    """One execution of a job's function. What is `kept` by name survives its attempts."""

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
        self._signals: list[Signal] = []
        self._deadlines: dict[str, Instant | None] = {}
        self._calls: dict[str, list[Submitted]] = {}
        self.id: UUID = self._env.new_id()
        self.kept: dict[str, Raw] = {}
        self.submitted: list[Submit] = []
        self.artifacts: dict[str, bytes] = {}
        self.attempts: list[Attempt] = []
        self.failures = 0
        self.log: list[str] = []
        self.cancelled = False

    @property
    def slept(self) -> float:
        """Seconds that have passed on its clock."""
        return (self._now - self._began) / SECOND

    @property
    def steps(self) -> dict[str, Any]:
        """What is remembered, by name; Horae's own entries begin with @."""
        return {name: msgspec.json.decode(result) for name, result in self.kept.items()}

    def signal(self, name: str, payload: Any = None) -> None:
        """Send a signal; the execution takes it when it waits for it."""
        self._signals.append(Signal(id=self._env.new_id(), name=name, payload=msgspec.json.encode(payload)))

    def crash_after(self, count: int) -> None:
        """Let the process die after so many more things were remembered."""
        self._crash_after = count

    async def finish(self) -> Any:
        """Run attempts until the execution has ended; its result, or the error that it failed with.

        Failures are tried again as often as the job's `retries` say. Raises Waits when nothing can wake it.
        """
        retries = int(self._job.definition().get("retries", 0)) if hasattr(self._job, "definition") else 0
        for _ in range(MOST_ATTEMPTS):
            try:
                return await self.attempt()
            except Crash:
                continue
            except Exception as error:
                if isinstance(error, GiveUp | Waits | Cancelled) or self.failures > retries:
                    raise
            except Suspended:
                continue
        raise Waits(f"it was suspended {MOST_ATTEMPTS} times")

    async def attempt(self) -> Any:
        """Run one attempt; raises Suspended when it waits (the clock then stands where it wakes), and Crash."""
        port = _InlinePort(self)
        context = Context(self._facts(), port, self._secrets)
        try:
            result = await self._call(context)
            context._check_done()
        except Crash:
            self.attempts.append(Attempt(outcome="crashed"))
            raise
        except Suspended as waits:
            self.attempts.append(Attempt(outcome="suspended"))
            self._wake(waits.wake_at, waits.waits)
            raise
        except BaseException as error:
            self.failures += 1
            self.attempts.append(Attempt(outcome="failed", error=error))
            raise
        self.attempts.append(Attempt(outcome="success"))
        return msgspec.json.decode(msgspec.json.encode(result))

    async def _call(self, context: Context) -> Any:
        entry = self._job
        function = getattr(entry, "function", entry)
        bind = entry.signature.binder(entry.definition().get("params", {}))
        args, kwargs = bind(Raw(msgspec.json.encode(self._params)), context)
        CURRENT.set(lambda: context)
        if inspect.iscoroutinefunction(inspect.unwrap(function)):
            return await function(*args, **kwargs)
        return await asyncio.to_thread(function, *args, **kwargs)

    def _facts(self) -> Facts:
        definition: Mapping[str, Any] = self._job.definition()
        return Facts(
            execution_id=self.id,
            job=self._job.name,
            attempt=len(self.attempts) + 1,
            token=(1 << 32) + len(self.attempts) + 1,
            failures=self.failures,
            scheduled_at=self._began,
            params=Raw(msgspec.json.encode(self._params)),
            defaults=Raw(msgspec.json.encode(definition.get("params", {}))),
            durable=bool(definition.get("durable")),
        )

    def _wake(self, wake_at: Instant | None, waits: tuple[str, ...]) -> None:
        """Time goes on to when it wakes, unless a signal has come meanwhile."""
        if any(step not in self._deadlines for step in waits):
            return
        if wake_at is None:
            names = ", ".join(step.removeprefix("@wait:") for step in waits)
            raise Waits(f"it waits for {names}: send it with signal()")
        self._now = max(self._now, wake_at)

    # What its port answers

    def answer(self, ask: Ask) -> Any:
        """What a server would answer."""
        if isinstance(ask, Keep):
            return self._keep(ask)
        if isinstance(ask, Recall):
            return dict(self.kept)
        if isinstance(ask, Now):
            return self._now
        if isinstance(ask, Nap):
            self._now += ask.span
            return None
        if isinstance(ask, WaitFor):
            return self._wait(ask)
        if isinstance(ask, Bring):
            content = Path(ask.path).read_bytes()
            self.artifacts[ask.name] = content
            digest = hashlib.sha256(content).hexdigest()
            return Kept(name=ask.name, url="", size=len(content), type=ask.media, sha256=digest)
        return self._submit(ask)

    def _keep(self, ask: Keep) -> Raw:
        if ask.name not in self.kept or ask.name == CHECKPOINT:
            self.kept[ask.name] = Raw(bytes(ask.result))
            self._count()
        return self.kept[ask.name]

    def _count(self) -> None:
        """The process dies when enough was remembered, before the code hears of it."""
        if self._crash_after is None:
            return
        self._crash_after -= 1
        if self._crash_after == 0:
            self._crash_after = None
            raise Crash

    def _wait(self, ask: WaitFor) -> Awaited:
        named = [signal for signal in self._signals if signal.name == ask.signal]
        found = first_for(ask.filter, named)
        begun = None if ask.timeout is None else self._now + ask.timeout
        deadline = self._deadlines.setdefault(ask.step, begun)
        if found is None and (deadline is None or deadline > self._now):
            return Awaited(deadline=deadline)
        if found is not None:
            self._signals.remove(found)
        del self._deadlines[ask.step]
        self.kept[ask.step] = Raw(TIMED_OUT if found is None else taken(found))
        self._count()
        return Awaited(result=self.kept[ask.step])

    def _submit(self, ask: Submissions) -> list[Submitted]:
        known = self._calls.get(ask.call)
        if known is not None:
            return [Submitted(execution_id=one.execution_id, deduplicated=True) for one in known]
        self.submitted += ask.submissions
        self._calls[ask.call] = [Submitted(execution_id=self._env.new_id()) for _ in ask.submissions]
        return self._calls[ask.call]


class _InlinePort:
    """The way from the function to its runner: answers are there at once."""

    def __init__(self, run: Inline) -> None:
        self._run = run
        self._crashed = False

    @property
    def interrupted(self) -> str | None:
        return "cancel" if self._run.cancelled else None

    def heartbeat(self) -> None: ...

    def progress(self, percent: float, message: str) -> None: ...

    def log(self, stream: str, text: str) -> None:
        self._run.log.append(text)

    def hide(self, text: str) -> str:
        return text

    def ask(self, ask: Ask) -> "Future[Any]":
        answer: Future[Any] = Future()
        if self._crashed:
            raise Crash
        try:
            answer.set_result(self._run.answer(ask))
        except Crash:
            self._crashed = True
            raise
        return answer
