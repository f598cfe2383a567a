"""A worker, its jobs and an in-memory server, all in the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Raw

from horae.env import SECOND, Env, system_env
from horae.errors import Busy, TooLarge
from horae.model.definitions.function_signature import Signature, signature_of
from horae.model.definitions.job import Spec
from horae.model.fleet.protocol import (
    ABSENT,
    Answer,
    Await,
    Awaited,
    Exchange,
    KnownSteps,
    Outcome,
    Register,
    Registered,
    Remember,
    Remembered,
    Step,
    StepRemembered,
)
from horae.model.fleet.submit import ChildSubmit
from horae.worker.code.execution_requests import ArtifactReceipt, ChildReceipt, UploadArtifact
from horae.worker.code.tracing import TracerFactory
from horae.worker.settings import WorkerSettings
from horae.worker.worker import WorkerRuntime
from tests.waiting import eventually
from tests.worker.gateway import Gateway


class Job:
    """A registered function, as an App would hold it."""

    def __init__(self, name: str, function: Callable[..., Any], retry: Any = None) -> None:
        self.name, self.function, self.retry_function = name, function, retry
        self.signature: Signature = signature_of(function)


class Jobs:
    def __init__(self, *functions: Callable[..., Any], **named: Callable[..., Any]) -> None:
        entries = {f.__name__: f for f in functions} | named
        self.jobs = {name: Job(name, function) for name, function in entries.items()}


class LocalTransport:
    """Calls the gateway without a network; `is_down` cuts the connection."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.registered: list[Register] = []
        self.children: dict[tuple[UUID, int, str], list[ChildReceipt]] = {}
        self.submitted: list[ChildSubmit] = []
        self.steps: dict[tuple[UUID, int], dict[str, Raw]] = {}
        self.signals: dict[str, list[object]] = {}
        self.artifacts: dict[str, tuple[str, bytes]] = {}
        self.most = 1_000_000  # bytes per attempt
        self.calls = 0  # the calls that stored steps
        self.closed: list[UUID] = []
        self.is_down = False
        self.failure: Exception | None = None

    async def register(self, body: Register) -> Registered:
        self._reach()
        self.registered.append(body)
        return self.gateway.register()

    async def exchange(self, session: UUID, body: Exchange) -> Answer:
        body = msgspec.json.decode(msgspec.json.encode(body), type=Exchange)
        waits = round(body.wait / SECOND / 0.02)
        while True:
            self._reach()
            answer = self.gateway.exchange(session, body, patient=waits > 0)
            if answer is not None:
                return msgspec.json.decode(msgspec.json.encode(answer), type=Answer)
            waits -= 1
            await self.gateway.env.clock.sleep(0.02)

    async def submit_children(self, session: UUID, body: ChildSubmit) -> list[ChildReceipt]:
        self._reach()
        self.submitted.append(body)
        key = (body.parcel, body.item, body.call)
        known = self.children.get(key)
        if known is not None:
            return [ChildReceipt(execution_id=child.execution_id, deduplicated=True) for child in known]
        self.children[key] = [ChildReceipt(execution_id=self.gateway.env.new_id()) for _ in body.submissions]
        return self.children[key]

    async def remember(self, session: UUID, body: Remember) -> Remembered:
        self._reach()
        self.calls += 1
        return Remembered(steps=[self._remember(step) for step in body.steps])

    def _remember(self, step: Step) -> StepRemembered:
        steps = self.steps.setdefault((step.parcel, step.item), {})
        if step.name in steps and step.name != "@checkpoint":
            return StepRemembered(known=True, result=steps[step.name])
        steps[step.name] = step.result
        return StepRemembered()

    async def known_steps(self, session: UUID, parcel: UUID, item: int, after: str) -> KnownSteps:
        """Return one step per page, so that a worker that does not continue misses some."""
        self._reach()
        left = sorted(name for name in self.steps.get((parcel, item), {}) if name > after)
        steps = {name: self.steps[parcel, item][name] for name in left[:1]}
        return KnownSteps(steps=steps, next=left[0] if len(left) > 1 else None)

    async def wait_for_signal(self, session: UUID, body: Await) -> Awaited:
        self._reach()
        steps = self.steps.setdefault((body.parcel, body.item), {})
        if body.step not in steps and self.signals.get(body.signal):
            steps[body.step] = Raw(msgspec.json.encode({"payload": self.signals[body.signal].pop(0)}))
        return Awaited(result=steps.get(body.step, ABSENT))

    async def upload_artifact(
        self, session: UUID, parcel: UUID, item: int, attempt: int, file: UploadArtifact
    ) -> ArtifactReceipt:
        self._reach()
        content = Path(file.path).read_bytes()
        if len(content) > self.most:
            raise TooLarge("The artifact is larger than 1000000 bytes.", "Raise `artifact_limit`.")
        self.artifacts[file.name] = (file.media, content)
        return ArtifactReceipt(name=file.name, url=f"/{file.name}", size=len(content), type=file.media, sha256="")

    async def close_session(self, session: UUID) -> None:
        self._reach()
        self.closed.append(session)

    def add_servers(self, servers: Sequence[str]) -> None: ...

    async def close(self) -> None: ...

    def _reach(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.is_down:
            raise Busy("down")


class Shop:
    """A running worker, and the means to give it work."""

    def __init__(
        self,
        jobs: Any,
        settings: WorkerSettings,
        gateway: Gateway,
        tracer: TracerFactory = None,
    ) -> None:
        self.gateway = gateway
        self.transport = LocalTransport(self.gateway)
        self.worker = WorkerRuntime(gateway.env, settings, self.transport, jobs, tracer)
        self.end: asyncio.Task[str] | None = None

    def submit(self, task: Any, *items: Any, **how: Any) -> UUID:
        """Queue items of a job with this task."""
        how.setdefault("grace", SECOND // 2)
        spec = Spec(name=how.pop("name", "job"), task=task, **how)
        return self.gateway.submit(spec, [msgspec.json.encode(item) for item in items or ({},)])

    async def outcome(self, parcel: UUID, index: int = 0, within: float = 20.0) -> Outcome:
        """Wait for the outcome of an item."""
        return await eventually(lambda: self.gateway.finished.get((parcel, index)), within)

    async def run(self, task: Any, item: Any = None, **how: Any) -> Outcome:
        """Submit one item and wait for its outcome."""
        return await self.outcome(self.submit(task, item or {}, **how))

    async def is_running(self, parcel: UUID, index: int = 0) -> None:
        await eventually(lambda: (parcel, index) in self.gateway.running)

    async def line(self, parcel: UUID, text: str, index: int = 0) -> None:
        """Wait for a log line."""
        await eventually(lambda: any(text in line for line in self.gateway.lines(parcel, index)))


def result(outcome: Outcome) -> Any:
    """Return the only result of an outcome."""
    assert outcome.outcome == "success", outcome
    return msgspec.json.decode(outcome.results[0]) if outcome.results else None


@asynccontextmanager
async def shop(
    jobs: Any = None,
    timeout: float = 15.0,
    heartbeat: float = 5.0,
    env: Env | None = None,
    tracer: TracerFactory = None,
    **settings: Any,
) -> AsyncIterator[Shop]:
    """Run a worker for as long as the block lasts."""
    settings.setdefault("concurrency", 4)
    settings.setdefault("grace", 2 * SECOND)
    gateway = Gateway(env or system_env(), timeout=timeout, heartbeat=heartbeat)
    made = Shop(jobs or Jobs(), WorkerSettings(**settings), gateway, tracer)
    made.end = asyncio.create_task(made.worker.run())
    try:
        yield made
    finally:
        made.worker.abort()
        await asyncio.wait([made.end])
