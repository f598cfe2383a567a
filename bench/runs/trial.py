"""A trial: a whole server on a virtual clock and a store in memory, and a worker with executions that only take time.

All decisions are made by the product: submissions, lanes, claims, reports. Therefore, the effects of a policy in an
hour of work are computed in seconds, and are reproducible.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from horae.engine.server_node import ServerNode
from horae.env import Instant, Micros, VirtualClock, virtual_env
from horae.errors import HoraeError
from horae.model.fleet.protocol import PROTOCOL, Answer, Exchange, Grant, Outcome, Register
from horae.model.fleet.submit import Submit
from horae.model.tenancy.principal import DEFAULT_NAMESPACE

STEP = 100_000  # microseconds, at least, between two steps of a server's services


class TrialExecution(Struct, frozen=True):
    """An execution that ran: its job and params, arrival, start and end."""

    job: str
    params: Mapping[str, Any]
    arrived_at: Instant
    started_at: Instant
    ended_at: Instant
    deadline: Instant | None = None

    @property
    def wait(self) -> Micros:
        return self.started_at - self.arrived_at


class Trial:
    """One server, one worker with slots, and the submissions to come."""

    def __init__(self, node: ServerNode, clock: VirtualClock, session: UUID, slots: int) -> None:
        self.node, self.clock, self._session, self._slots = node, clock, session, slots
        self.ran: list[TrialExecution] = []
        self._names: dict[UUID, str] = {}
        self._arrivals: list[tuple[Instant, int, list[Submit], list[bytes] | None]] = []
        self._busy: list[tuple[Instant, int, Grant, int, Instant]] = []
        self._count = count()
        self._n = 0
        self._looked = 0

    @property
    def now(self) -> Instant:
        return self.node.env.now()

    async def queue(self, name: str, **definition: Any) -> None:
        """Define a queue."""
        await self.node.admission.queues.put(DEFAULT_NAMESPACE, name, definition)

    async def job(self, name: str, queue: str, **definition: Any) -> None:
        """Define a job; its executions take as many microseconds as their param `takes`."""
        body = {"name": name, "command": ["true"], "queue": queue, **definition}
        view, _ = await self.node.definitions.jobs.put(DEFAULT_NAMESPACE, body)
        self._names[view.job_id] = name
        await self.node.base.directory.load()

    def submit(self, at: Instant, job: str, takes: Micros, **how: Any) -> None:
        """Schedule the submission of one execution."""
        params = Raw(msgspec.json.encode({"takes": takes, **how.pop("params", {})}))
        heappush(self._arrivals, (at, next(self._count), [Submit(job=job, params=params, **how)], None))

    def submit_many(self, at: Instant, job: str, items: Sequence[Mapping[str, Any]], **how: Any) -> None:
        """Schedule the submission of many executions with the same options."""
        encoded = [msgspec.json.encode(item) for item in items]
        heappush(self._arrivals, (at, next(self._count), [Submit(job=job, **how)], encoded))

    def served(self, param: str) -> dict[str, Micros]:
        """Return the worker time so far by the value of a param, including that of running executions."""
        got: dict[str, Micros] = {}
        for one in self.ran:
            got[one.params[param]] = got.get(one.params[param], 0) + one.ended_at - one.started_at
        for _, _, grant, item, start in self._busy:
            of = msgspec.json.decode(grant.items[item - grant.lo])[param]
            got[of] = got.get(of, 0) + self.now - start
        return got

    async def run(self, until: Instant) -> None:
        """Advance the time to an instant, from event to event."""
        while (at := self._next()) is not None and at <= until:
            if at > self.now:
                self.clock.advance(at - self.now)
            await self._arrive()
            await self._exchange()
        if until > self.now:
            self.clock.advance(until - self.now)

    def _next(self) -> Instant | None:
        heads = [line[0][0] for line in (self._arrivals, self._busy) if line]
        return min(heads, default=None)

    async def _arrive(self) -> None:
        while self._arrivals and self._arrivals[0][0] <= self.now:
            _, _, requests, items = heappop(self._arrivals)
            if items is None:
                await self.node.submitter.submit(DEFAULT_NAMESPACE, requests, origin="submit")
            else:
                await self.node.submitter.submit_bulk(DEFAULT_NAMESPACE, requests[0], items, origin="submit")
        if self.now >= self._looked + STEP:
            self._looked = self.now
            for service in (self.node.base.directory, self.node.base.directory.fair, self.node.admission.reranker):
                await service.step()

    async def _exchange(self) -> None:
        """Report ended executions, and start the granted ones."""
        outcomes = []
        while self._busy and self._busy[0][0] <= self.now:
            end, _, grant, item, start = heappop(self._busy)
            outcomes.append(_success(grant, item, start, end))
            self._note(grant, item, start, end)
        self._n += 1
        free = self._slots - len(self._busy)
        up = Exchange(channel=0, n=self._n, free=free, outcomes=outcomes)
        answer = msgspec.json.decode(
            await self.node.gateway.exchange(DEFAULT_NAMESPACE, self._session, up), type=Answer
        )
        if answer.ignored:
            raise HoraeError("A report of the trial was ignored.")
        for grant in answer.slices:
            for item in range(grant.lo, grant.hi):
                takes = msgspec.json.decode(grant.items[item - grant.lo])["takes"]
                heappush(self._busy, (self.now + takes, next(self._count), grant, item, self.now))

    def _note(self, grant: Grant, item: int, start: Instant, end: Instant) -> None:
        params = msgspec.json.decode(grant.items[item - grant.lo])
        name = self._names[grant.job]
        self.ran.append(TrialExecution(name, params, grant.due_at, start, end, grant.deadline))


def _success(grant: Grant, item: int, start: Instant, end: Instant) -> Outcome:
    return Outcome(
        parcel=grant.parcel, lo=item, hi=item + 1, attempt=grant.attempt, outcome="success", started_at=[start],
        ended_at=[end],
    )  # fmt: skip


@asynccontextmanager
async def trial(slots: int, queues: Sequence[str] = ("default",), **presence: Any) -> AsyncIterator[Trial]:
    """Open a trial with a worker that takes from these queues."""
    clock = VirtualClock()
    node = await ServerNode.open(virtual_env(clock=clock), "sqlite://", owner="(a trial)")
    try:
        await node.prepare()
        register = Register(protocol=PROTOCOL, worker="trial", concurrency=slots, queues=tuple(queues), **presence)
        session = (await node.gateway.register(DEFAULT_NAMESPACE, register)).session_id
        yield Trial(node, clock, session, slots)
    finally:
        await node.stop()


def jain(parts: Collection[float]) -> float:
    """Return Jain's fairness index of weighted parts: 1 when all are equal, 1/n when one of n has everything."""
    total = sum(parts)
    return total * total / (len(parts) * sum(part * part for part in parts)) if total else 1.0
