"""Workers that run pretend jobs through the real session core, and clients that submit and cancel."""

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import TypeVar
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.errors import Busy, HoraeError, SessionEnded
from horae.model.base.ids import execution_id
from horae.model.executions.submission import Idempotency, Receipt
from horae.model.fleet.protocol import PROTOCOL, Answer, Exchange, Failure, Function, Reattach, Reattached, Register
from horae.model.fleet.submit import Submit
from horae.worker.exchange.delivery import LOST, Deliveries
from horae.worker.holding import Chunk, ItemOutcome, StartedItem
from horae.worker.interrupts import Interrupt
from horae.worker.session import WorkerSession
from tests.simulation.durable import SIGNAL, Course, Kept
from tests.simulation.world import Actor, Lost, World

T = TypeVar("T")
_answers = msgspec.json.Decoder(Answer)


class Begin(Struct, frozen=True):
    """An attempt as the observer saw it begin."""

    execution: UUID
    attempt: int
    session: UUID
    at: int


class Observer:
    """A record of every start and end of an attempt, kept outside of the system."""

    def __init__(self) -> None:
        self.begun: list[Begin] = []
        self.ended: dict[tuple[UUID, int], int] = {}
        self.kept: dict[tuple[UUID, str], Kept] = {}  # remembered steps of durable executions


class _Network:
    """A worker's calls over the world's network. Unlike a process, a frozen worker notices an answer later."""

    def __init__(self, worker: "Worker") -> None:
        self._worker, self._world = worker, worker.world

    async def exchange(self, session: UUID, body: Exchange) -> Answer:
        wait = body.wait / SECOND + 3
        return _answers.decode(await self._call(lambda node: node.gateway.exchange(1, session, body), wait))

    async def reattach(self, session: UUID, body: Reattach) -> Reattached:
        return await self._call(lambda node: node.gateway.reattach(1, session, body), 3)

    def add_servers(self, servers: Sequence[str]) -> None:
        """Do nothing: the world chooses a server for each call."""

    async def _call(self, act: Callable[[ServerNode], Awaitable[T]], timeout: float) -> T:
        await self._worker.thaw()
        try:
            answer = await self._world.call(act, timeout)
        except Lost:
            raise Busy("No answer arrived.") from None
        await self._worker.thaw()
        return answer


class Worker(Actor):
    """A worker process with one session at a time and several slots; params define durations and failures of jobs."""

    def __init__(
        self,
        world: World,
        observer: Observer,
        name: str,
        slots: int,
        *,
        queues: tuple[str, ...] = ("default",),
        resources: dict[str, int] | None = None,
        pulse: float = 0.05,
    ) -> None:
        super().__init__(name)
        self.world, self.observer, self.slots = world, observer, slots
        self.queues, self.resources, self.pulse = queues, resources or {}, pulse  # seconds between two rounds
        self.rng = Random(world.rng.random())
        self.session: WorkerSession | None = None
        self._deliveries = Deliveries(world.env, _Network(self), self._back_off)
        self.frozen_until = 0.0
        self.draining = False
        self.gone = False
        self._kinds: dict[tuple[UUID, int], str] = {}

    def start(self) -> None:
        self.spawn(self._live())

    async def _live(self) -> None:
        while not self.gone:
            session = await self._register()
            if session is not None:
                await self._serve(session)

    async def _register(self) -> WorkerSession | None:
        presence = Register(
            protocol=PROTOCOL, worker=self.name, concurrency=self.slots, functions=[Function(name="work")], kinds=(),
            queues=self.queues, resources=self.resources, reattaches=self.rng.random() < 0.8,
        )  # fmt: skip
        try:
            registered = await self.world.call(lambda node: node.gateway.register(1, presence))
        except (Lost, Busy):
            await self.world.clock.sleep(0.3)
            return None
        self.session = WorkerSession(self.world.clock, registered, self.slots, resources=self.resources)
        return self.session

    async def _serve(self, session: WorkerSession) -> None:
        """Send the session's exchanges, and run the items that it holds, until it ends."""
        while not session.ended:
            await self.thaw()
            if self.draining:
                session.drain()
            self._fill_slots(session)
            session.tick()
            while (exchange := session.next_exchange()) is not None:
                self.spawn(self._deliver(session, exchange))
            self._fill_slots(session)
            if session.is_drained and not session.unanswered():
                self.gone = True
                await self._close(session)
                return
            await self.world.clock.sleep(self.pulse)

    def _fill_slots(self, session: WorkerSession) -> None:
        while (chunk := session.take()) is not None:
            self.spawn(self._run(session, chunk))

    async def _close(self, session: WorkerSession) -> None:
        try:
            await self.world.call(lambda node: node.gateway.close(1, session.id))
        except (Lost, HoraeError):
            return

    async def _deliver(self, session: WorkerSession, exchange: Exchange) -> None:
        """Deliver an exchange, as a worker process does."""
        try:
            delivered = await self._deliveries.exchange(session, exchange)
            interrupts = delivered.interrupts
            if delivered.reattach:
                interrupts = await self._deliveries.reattach(session)
                for unanswered in session.unanswered():
                    self.spawn(self._deliver(session, unanswered))
        except LOST:
            session.end()
            return
        for interrupt in interrupts:
            self._interrupt(session, interrupt)

    async def _back_off(self, wait: float) -> float:
        await self.world.clock.sleep(self.rng.uniform(0.05, 0.3))
        return wait

    async def _run(self, session: WorkerSession, chunk: Chunk) -> None:
        """Run a chunk item after item, without items that were decided meanwhile."""
        while (begun := chunk.begin(self.world.clock.monotonic())) is not None:
            held_slice, index, _ = begun
            execution, attempt = execution_id(held_slice.grant.parcel, index), held_slice.grant.attempt
            assert chunk.backlog.spec is not None
            params = {**chunk.backlog.spec.params, **msgspec.json.decode(held_slice.item(index))}
            began_at = self.world.clock.now()
            self.observer.begun.append(Begin(execution, attempt, session.id, began_at))
            await self.world.clock.sleep(params["ms"] / 1000)
            steps = params.get("steps", 0)
            stopped = await Course(self, session, begun, began_at).run(steps) if steps else None
            await self.thaw()
            self.observer.ended[execution, attempt] = self.world.clock.now()
            chunk.end(begun, self.world.clock.monotonic(), stopped or _fate(params, held_slice.grant.failures, attempt))
        session.finish(chunk)

    async def ask(self, session: WorkerSession, act: Callable[[ServerNode], Awaitable[T]]) -> T:
        """Repeat a call until a server answers it."""
        while not session.ended:
            await self.thaw()
            try:
                return await self.world.call(act)
            except (Lost, Busy):
                await self.world.clock.sleep(self.rng.uniform(0.05, 0.3))
        raise SessionEnded("The session has ended.")

    def _interrupt(self, session: WorkerSession, interrupt: Interrupt) -> None:
        kinds = {"cancel": "cancelled", "preempt": "released", "drain": "released"}
        outcome = kinds.get(interrupt.kind)
        if outcome is not None:
            self.observer.ended[self._key(interrupt.begun)] = self.world.clock.now()
            session.decide(interrupt.chunk, interrupt.begun, ItemOutcome(outcome=outcome))  # type: ignore[arg-type]

    def _key(self, begun: StartedItem) -> tuple[UUID, int]:
        return execution_id(begun[0].grant.parcel, begun[1]), begun[0].grant.attempt

    def freeze(self, seconds: float) -> None:
        """Stop for some seconds, as SIGSTOP does."""
        self.world.hits["freeze"] += 1
        self.frozen_until = self.world.clock.monotonic() + seconds

    async def thaw(self) -> None:
        while self.world.clock.monotonic() < self.frozen_until:
            await self.world.clock.sleep(self.frozen_until - self.world.clock.monotonic())


def _fate(params: dict[str, int], failures: int, attempt: int) -> bytes | ItemOutcome:
    """Return a failure for the first `fail` times, then a result with the number of its attempt."""
    if failures < params["fail"]:
        return ItemOutcome(outcome="failed", error=Failure(type="Planned", message="as the params say"))
    return msgspec.json.encode({"i": params["i"], "attempt": attempt})


class Client(Actor):
    """A client that submits batches, repeats unanswered requests, and records acknowledged executions."""

    def __init__(self, world: World, name: str, jobs: list[str]) -> None:
        super().__init__(name)
        self.world, self.jobs = world, jobs
        self.rng = Random(world.rng.random())
        self.acknowledged: dict[UUID, dict[str, int]] = {}
        self.cancelled: set[UUID] = set()
        self.requests = 0
        self._count = 0

    async def live(self, seconds: float) -> None:
        end = self.world.clock.monotonic() + seconds
        while self.world.clock.monotonic() < end:
            await self.submit(self.rng.choice([1, 1, 1, 3, 40]))
            if self.acknowledged and self.rng.random() < 0.2:
                await self.cancel(self.rng.choice(list(self.acknowledged)))
            if self.acknowledged and self.rng.random() < 0.5:
                await self.signal(self.rng.choice(list(self.acknowledged)))
            await self.world.clock.sleep(self.rng.uniform(0.1, 3))

    def _params(self) -> dict[str, int]:
        self._count += 1
        ms = self.rng.choice([0, 1, 5, 50, 1500, 9000]) if self.rng.random() < 0.3 else self.rng.choice([0, 2])
        return {"i": self._count, "ms": ms, "fail": self.rng.choice([0, 0, 0, 0, 1, 2, 9])}

    async def submit(self, size: int) -> None:
        job = self.rng.choice(self.jobs)
        delay = self.rng.choice([None, None, None, 2 * SECOND])
        params = [self._params() for _ in range(size)]
        requests = [Submit(job=job, params=Raw(msgspec.json.encode(p)), delay=delay) for p in params]
        self.requests += 1
        until = self.world.env.now() + 7200 * SECOND
        own = Idempotency(1, "executions", f"{self.name}-{self.requests}", b"body", until)
        receipts = await self._until_answered(requests, own)
        for receipt, p in zip(receipts, params, strict=True):
            assert isinstance(receipt, Receipt)
            self.acknowledged[receipt.execution_id] = p

    async def _until_answered(self, requests: list[Submit], own: Idempotency) -> list[Receipt | HoraeError]:
        while True:
            try:
                return await self.world.call(
                    lambda node: node.submitter.submit(1, requests, origin="submit", idempotency=own)
                )
            except (Lost, Busy, HoraeError):
                await self.world.clock.sleep(0.2)

    async def signal(self, execution: UUID) -> None:
        """Send the signal for which an execution waits or will wait, if it is durable."""
        try:
            await self.world.call(lambda node: node.work.signals.send(1, execution, SIGNAL, Raw(b'"now"')))
        except (Lost, HoraeError):
            return

    async def cancel(self, execution: UUID) -> None:
        from horae.model.base.ids import index_of, parcel_of

        self.cancelled.add(execution)
        try:
            await self.world.call(
                lambda node: node.store.cancel(parcel_of(execution), index_of(execution), "asked by the simulation")
            )
        except (Lost, Busy):
            return
