"""The stage for scenes of `explain`: a server with manually stepped services, and minimal workers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from msgspec import Struct, json

from horae.engine.server_node import ServerNode
from horae.env import SECOND, Instant
from horae.model.base.ids import execution_id, parcel_of
from horae.model.executions.explain_view import BlockerView, ExplanationView
from horae.model.fleet.protocol import Answer, Exchange, Failure, Grant, Outcome, Register
from horae.model.fleet.submit import Submit
from horae.store.contract import Store
from tests.store_contract.world import NAMESPACE, World

ROUNDS = 150  # rounds of one second in which an execution must start


class Worker:
    """A worker's session that accepts every grant."""

    def __init__(self, node: ServerNode, session: UUID, free: int) -> None:
        self.node, self.session, self.free, self.n = node, session, free, 0
        self.holds: list[Grant] = []

    async def ask(self, *outcomes: Outcome, free: int | None = None) -> list[Grant]:
        """Send an exchange that does not wait; return its grants."""
        self.n += 1
        wanted = self.free if free is None else free
        up = Exchange(channel=0, n=self.n, free=wanted, wait=0, outcomes=list(outcomes))
        answer = json.decode(await self.node.gateway.exchange(NAMESPACE, self.session, up), type=Answer)
        self.holds += answer.slices
        self.free = wanted - sum(s.hi - s.lo for s in answer.slices)
        return answer.slices

    async def end(self, state: str = "success") -> None:
        """Report the outcome of all its executions."""
        error = Failure(type="ValueError", message="no") if state == "failed" else None
        outcomes = [
            Outcome(parcel=s.parcel, lo=s.lo, hi=s.hi, attempt=s.attempt, outcome=state, error=error)  # type: ignore[arg-type]
            for s in self.holds
        ]
        free, self.holds = self.free + sum(s.hi - s.lo for s in self.holds), []
        await self.ask(*outcomes, free=0)
        self.free = free


class Stage:
    """One server on one store."""

    def __init__(self, world: World, node: ServerNode) -> None:
        self.world, self.node = world, node
        self.workers: list[Worker] = []

    async def job(self, name: str = "job", **more: Any) -> UUID:
        made = await self.node.definitions.jobs.create(NAMESPACE, {"name": name, "command": "true", **more})
        await self.look()
        return made.job_id

    async def submit(self, name: str = "job", **more: Any) -> UUID:
        (receipt,) = await self.node.submitter.submit(NAMESPACE, [Submit(job=name, **more)], origin="submit")
        return receipt.execution_id  # type: ignore[union-attr]

    async def worker(self, slots: int = 1, **more: Any) -> Worker:
        presence = Register(
            protocol=2, worker=f"w{len(self.workers)}", concurrency=slots,
            **{"queues": ("default",), "labels": {}, "functions": ()} | more,
        )  # fmt: skip
        session = (await self.node.gateway.register(NAMESPACE, presence)).session_id
        self.workers.append(Worker(self.node, session, slots))
        return self.workers[-1]

    async def look(self) -> None:
        """Run one step of every service."""
        await self.node.base.directory.load()
        for service in self.node.services({"scheduler"}):
            await service.step()

    async def pass_time(self, seconds: float = 1) -> None:
        self.world.clock.advance(round(seconds * SECOND))
        await self.look()

    async def fire(self) -> list[UUID]:
        """Fire due triggers; return the newest executions."""
        await self.look()
        rows = await self.world.rows("SELECT id FROM parcels ORDER BY id DESC LIMIT 20")
        return [execution_id(row[0], 0) for row in rows]

    async def explain(self, id: UUID) -> ExplanationView:
        return await self.node.work.explainer.execution(NAMESPACE, id)

    async def blockers(self, id: UUID) -> dict[str, BlockerView]:
        return {blocker.gate: blocker for blocker in (await self.explain(id)).blockers}

    async def runs(self, id: UUID) -> bool:
        """Return whether a worker runs an execution."""
        rows = await self.world.rows("SELECT lo FROM running WHERE parcel = $1", parcel_of(id))
        return bool(rows)

    async def starts(self, id: UUID) -> bool:
        """Advance time and let workers ask until an execution runs."""
        for _ in range(ROUNDS):
            for worker in self.workers:
                await worker.ask()
            if await self.runs(id):
                return True
            await self.pass_time()
        return False


@asynccontextmanager
async def staged(world: World, monkeypatch: Any) -> AsyncIterator[Stage]:
    """Make a stage. Its server does nothing by itself, and the test controls the store's clock."""

    async def server_time() -> Instant:
        return world.now()

    monkeypatch.setattr(world.driver, "server_time", server_time)
    node = ServerNode(world.env, Store(world.driver, world.env))
    await node.prepare()
    stage = Stage(world, node)
    yield stage
    await node.gateway.stop()
    await node.submitter.close()


class Played(Struct, frozen=True):
    """A closed gate: its execution, the action that opens it, and other gates that the scene closes."""

    execution: UUID
    open: Callable[[BlockerView], Awaitable[object]]
    beside: frozenset[str] = frozenset()
