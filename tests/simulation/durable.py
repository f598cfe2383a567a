"""Durable jobs in the simulation: remembered steps, with a sleep and a wait for a signal between them."""

from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.errors import Conflict, NotFound, SessionEnded
from horae.model.base.ids import execution_id
from horae.model.fleet.protocol import Await, KnownSteps, Remember, Step
from horae.worker.holding import RELEASED, ItemOutcome, StartedItem
from horae.worker.session import WorkerSession

if TYPE_CHECKING:
    from tests.simulation.actors import Worker

SIGNAL = "go"
PATIENCE = 4 * SECOND  # for a signal that may never come


class Kept(Struct, frozen=True):
    """The acknowledged result of a step, and the time of the acknowledgement."""

    result: bytes
    at: int


class Course:
    """One attempt of a durable execution: it reads finished steps, runs the others, and sleeps in between."""

    def __init__(self, worker: "Worker", session: WorkerSession, begun: StartedItem, began_at: int) -> None:
        self.worker, self.session, self.began_at = worker, session, began_at
        self.parcel, self.item, self.attempt = begun[0].grant.parcel, begun[1], begun[0].grant.attempt
        self.execution: UUID = execution_id(self.parcel, self.item)
        self.known: dict[str, bytes] = {}

    async def run(self, count: int) -> ItemOutcome | None:
        """Run the steps; return None when all are done, or the outcome with which the attempt stops."""
        try:
            await self._recall()
            for i in range(count):
                stopped = await (self._nap, self._signal, self._effect)[i % 3](f"s{i}")
                if stopped is not None:
                    return stopped
        except (Conflict, NotFound, SessionEnded):
            return RELEASED  # it runs elsewhere, so reports about it are ignored
        return None

    async def _recall(self) -> None:
        after: str | None = ""
        while after is not None:
            page = await self.worker.ask(self.session, partial(self._page, after))
            for step, result in page.steps.items():
                self._learn(step, bytes(result))
            after = page.next
        for (execution, name), kept in self.worker.observer.kept.items():
            if execution == self.execution and kept.at <= self.began_at:
                assert name in self.known, f"{execution} forgot {name}"

    async def _page(self, after: str, node: ServerNode) -> KnownSteps:
        return await node.gateway.durable_steps.known(1, self.session.id, self.parcel, self.item, after)

    def _learn(self, name: str, result: bytes) -> None:
        """Record the result of a step, and check that it has no other one."""
        self.known[name] = result
        now = self.worker.world.clock.now()
        first = self.worker.observer.kept.setdefault((self.execution, name), Kept(result, now))
        assert first.result == result, f"{name} of {self.execution} was {first.result!r} and is {result!r}"

    async def _keep(self, name: str, value: object) -> bytes:
        if name not in self.known:
            step = Step(
                parcel=self.parcel, item=self.item, attempt=self.attempt, name=name,
                result=Raw(msgspec.json.encode(value)),
            )  # fmt: skip
            told = await self.worker.ask(
                self.session,
                lambda node: node.gateway.durable_steps.remember(1, self.session.id, Remember(steps=[step])),
            )
            if told.steps[0].refused:
                raise Conflict("it runs elsewhere")
            self._learn(name, bytes(told.steps[0].result if told.steps[0].known else step.result))
        return self.known[name]

    async def _effect(self, name: str) -> None:
        """Run an effect that must not be repeated once its result is stored."""
        if name not in self.known:
            await self.worker.world.clock.sleep(0.02)
            await self._keep(name, [name, self.attempt])

    async def _nap(self, name: str) -> ItemOutcome | None:
        clock = self.worker.world.clock
        until = int(await self._keep(name, clock.now() + self.worker.rng.choice([0, SECOND, 3 * SECOND])))
        return ItemOutcome(outcome="suspended", wake_at=until) if clock.now() < until else None

    async def _signal(self, name: str) -> ItemOutcome | None:
        if name in self.known:
            return None
        body = Await(
            parcel=self.parcel, item=self.item, attempt=self.attempt, step=name, signal=SIGNAL, timeout=PATIENCE
        )
        told = await self.worker.ask(
            self.session, lambda node: node.gateway.durable_steps.wait(1, self.session.id, body)
        )
        if told.result:
            self._learn(name, bytes(told.result))
            return None
        return ItemOutcome(outcome="suspended", wake_at=told.deadline, waits=(name,))
