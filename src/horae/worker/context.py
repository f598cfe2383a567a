"""`ctx`: what a running function knows about its execution, and how it talks back.

The same class serves functions on the event loop, in threads and in child processes; a `Port` carries what it says.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from horae.env import Instant
from horae.model.instant import parse_instant
from horae.model.protocol import Submit
from horae.model.signals import Cancelled, Span, micros_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOW = {"delay", "at", "key", "priority", "tags"}  # what a submission may say beside its params


class Facts(Struct, frozen=True, kw_only=True):
    """What is known of an execution when it begins."""

    execution_id: UUID
    job: str
    attempt: int
    token: int
    failures: int
    scheduled_at: Instant
    deadline: Instant | None = None
    priority: int = 4
    parent: UUID | None = None
    tags: dict[str, str] = {}
    trace: str | None = None
    interval: tuple[Instant, Instant] | None = None
    upstream: tuple[UUID, ...] = ()
    params: Raw = Raw(b"{}")  # the item as it was submitted
    defaults: Raw = Raw(b"{}")  # the job's own params


class Submitted(Struct, frozen=True, kw_only=True, rename="camel"):
    """An execution that a running one submitted."""

    execution_id: UUID
    deduplicated: bool = False

    @property
    def id(self) -> str:
        """As the client spells it."""
        return str(self.execution_id)


class Submissions(Struct, frozen=True, tag=True):
    """Submit executions; the same call of the same execution answers with the same ones."""

    call: str
    submissions: list[Submit]


class Remember(Struct, frozen=True, tag=True):
    """Remember a step's result, and answer with the one that counts."""

    name: str
    result: Raw


class KnownSteps(Struct, frozen=True, tag=True):
    """Answer with the steps that earlier attempts remembered."""


Ask = Submissions | Remember | KnownSteps


class Port(Protocol):
    """The way from an execution to its session. Safe to use from any thread."""

    @property
    def interrupted(self) -> str | None:
        """Why the execution should stop, if it should."""
        ...

    def heartbeat(self) -> None: ...

    def progress(self, percent: float, message: str) -> None: ...

    def log(self, stream: str, text: str) -> None: ...

    def ask(self, ask: Ask) -> "Future[Any]":
        """Ask the server; the future fails with the server's error."""
        ...


class Log:
    """The execution's log: `ctx.log("text")`, or by level as in `ctx.log.warning("%s left", 3)`."""

    def __init__(self, port: Port) -> None:
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
    """One execution as its function sees it."""

    __horae_context__ = True

    def __init__(self, facts: Facts, port: Port) -> None:
        self._facts = facts
        self._port = port
        self._calls = 0
        self._steps: dict[str, Raw] | None = None if facts.attempt > 1 else {}  # None: not asked yet
        self.log = Log(port)
        self.sync = SyncFace(self)

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
        """The fencing token: hand it to whatever the job writes to, and let that refuse smaller ones."""
        return self._facts.token

    @property
    def failures(self) -> int:
        """How often this execution failed before."""
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
        return self._facts.trace

    @property
    def scheduled_at(self) -> datetime:
        return _moment(self._facts.scheduled_at)

    @property
    def interval(self) -> tuple[datetime, datetime] | None:
        """The data this execution is about, from a start up to an end; what it submits inherits it."""
        interval = self._facts.interval
        return None if interval is None else (_moment(interval[0]), _moment(interval[1]))

    @property
    def upstream(self) -> tuple[UUID, ...]:
        """The executions because of which this one started, when its job depends on others."""
        return self._facts.upstream

    @property
    def deadline(self) -> datetime | None:
        """When this attempt must have ended: by its timeout, that of all attempts, or the execution's own deadline."""
        return None if self._facts.deadline is None else _moment(self._facts.deadline)

    @property
    def params(self) -> dict[str, Any]:
        """The params as JSON values: the job's own, overridden by the submission's."""
        own = msgspec.json.decode(self._facts.defaults)
        return {**own, **(msgspec.json.decode(self._facts.params) or {})}

    @property
    def cancelled(self) -> bool:
        """Whether the execution should stop: cancelled, timed out, preempted, or its worker is leaving."""
        return self._port.interrupted is not None

    def raise_if_cancelled(self) -> None:
        """Stop here if the execution should stop."""
        if self.cancelled:
            raise Cancelled(f"stopped by request ({self._port.interrupted})")

    def heartbeat(self) -> None:
        """Tell that the execution is alive, for jobs with `timeouts.heartbeat`; progress tells it, too. It is cheap."""
        self._port.heartbeat()

    def progress(self, percent: float, message: str = "") -> None:
        """Tell how far the execution is, from 0 to 100."""
        self._port.progress(min(100.0, max(0.0, float(percent))), message)

    async def submit(self, job: Any, params: Mapping[str, Any] | None = None, **how: Any) -> Submitted:
        """Submit an execution of another job, by name or by its function.

        It is idempotent: the n-th submission of this execution is the same one in every attempt. `how` takes delay,
        at, key, priority and tags, and `call` to name the submission instead of counting it.
        """
        return (await self.submit_many(job, [params or {}], **how))[0]

    async def submit_many(self, job: Any, items: Sequence[Mapping[str, Any]], **how: Any) -> list[Submitted]:
        """Submit one execution per item, as one call."""
        done: list[Submitted] = await self._ask(self._submissions(job, items, how))
        return done

    async def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function once per execution: a later attempt gets the remembered result instead.

        The result is what JSON makes of it, in the first attempt too. A name stands for one step of the execution.
        """
        known = self._steps
        steps: dict[str, Raw] = known if known is not None else await self._ask(KnownSteps())
        self._steps = steps
        if name not in steps:
            value = function(*args, **kwargs)
            value = await value if inspect.isawaitable(value) else value
            steps[name] = await self._ask(_remember(name, value))
        return msgspec.json.decode(steps[name])

    async def _ask(self, ask: Ask) -> Any:
        return await asyncio.wrap_future(self._port.ask(ask))

    def _submissions(self, job: Any, items: Sequence[Mapping[str, Any]], how: dict[str, Any]) -> Submissions:
        self._calls += 1
        call = how.pop("call", None) or str(self._calls)
        name = getattr(job, "name", job)
        if unknown := how.keys() - _HOW:
            wrong = ", ".join(sorted(unknown))
            raise TypeError(f'params of a submission are one mapping: submit("{name}", {{...}}), not {wrong}=...')
        interval = self._facts.interval
        return Submissions(call, [_submission(name, item, interval=interval, **how) for item in items])


class SyncFace:
    """The same for sync functions: `ctx.sync.submit(...)`, `ctx.sync.step(...)` wait for the answer."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def submit(self, job: Any, params: Mapping[str, Any] | None = None, **how: Any) -> Submitted:
        return self.submit_many(job, [params or {}], **how)[0]

    def submit_many(self, job: Any, items: Sequence[Mapping[str, Any]], **how: Any) -> list[Submitted]:
        done: list[Submitted] = self._wait(self._context._submissions(job, items, how))
        return done

    def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        context = self._context
        steps: dict[str, Raw] = context._steps if context._steps is not None else self._wait(KnownSteps())
        context._steps = steps
        if name not in steps:
            steps[name] = self._wait(_remember(name, function(*args, **kwargs)))
        return msgspec.json.decode(steps[name])

    def _wait(self, ask: Ask) -> Any:
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("ctx.sync would block the event loop; await ctx.submit or ctx.step instead")
        return self._context._port.ask(ask).result()


CURRENT: ContextVar[Callable[[], Context | None]] = ContextVar("horae_current")


def current() -> Context:
    """The context of the execution that runs here; outside of one there is none to give."""
    context = current_or_none()
    if context is None:
        raise RuntimeError("no execution is running here")
    return context


def current_or_none() -> Context | None:
    """The context of the execution that runs here, if any."""
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
    *,
    delay: Span | None = None,
    at: datetime | str | None = None,
    key: str | None = None,
    priority: int | None = None,
    tags: dict[str, str] | None = None,
    interval: tuple[Instant, Instant] | None = None,
) -> Submit:
    return Submit(
        job=job,
        params=Raw(msgspec.json.encode(params)),
        delay=None if delay is None else micros_of(delay),
        at=None if at is None else _instant(at),
        key=key,
        priority=priority,
        tags=tags or {},
        interval=interval,
    )


def _remember(name: str, value: Any) -> Remember:
    return Remember(name, Raw(msgspec.json.encode(value)))


def _moment(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def _instant(at: datetime | str) -> Instant:
    if isinstance(at, str):
        return parse_instant(at)
    if at.tzinfo is None:
        raise ValueError("a time without a zone names no instant; give it tzinfo")
    return (at - _EPOCH) // timedelta(microseconds=1)
