"""Filling of a store before a measurement, with functions of the engine and the store.

It runs in the bench's process, before a server opens the store, and leaves the same rows as servers and workers.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from uuid import UUID

import msgspec
from msgspec import Raw, structs

from bench.kit.app import app
from horae.engine.base.hints import Hint
from horae.engine.server_node import ServerNode
from horae.env import Env
from horae.errors import HoraeError
from horae.model.base.ids import execution_id
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Envelope
from horae.model.executions.submission import NewBulk, Submission
from horae.model.fleet.protocol import PROTOCOL, Answer, Exchange, Function, Grant, Outcome, Register
from horae.model.tenancy.principal import DEFAULT_NAMESPACE

AT_ONCE = 20_000  # executions in one round
MOST_LOTS = 1_000  # parcels in one transaction
SAMPLE = 50  # ids remembered from each round
JOB = "bench-noop"
OnProgress = Callable[[int], object]


class Filler:
    """A filler that submits and finishes executions on its own node."""

    def __init__(self, node: ServerNode) -> None:
        self._node = node
        self._session: UUID | None = None
        self._n = 0
        self._number = 0

    async def queue(self, count: int, per_parcel: int, on_progress: OnProgress = lambda done: None) -> None:
        """Queue executions in parcels of a given size."""
        for size in _rounds(count, per_parcel):
            await self._submit(size, per_parcel)
            on_progress(size)

    async def finish(self, count: int, per_parcel: int, on_progress: OnProgress = lambda done: None) -> list[UUID]:
        """Submit executions and report them as ended; return some of their ids."""
        some: list[UUID] = []
        for size in _rounds(count, per_parcel):
            await self._submit(size, per_parcel)
            some += (await self._work(size))[:SAMPLE]
            on_progress(size)
        return some

    async def _submit(self, count: int, per_parcel: int) -> None:
        """Submit executions; lots with different due instants never share a parcel."""
        stored = await self._node.base.directory.jobs.get(DEFAULT_NAMESPACE, JOB)
        spec, now = stored.job.spec, self._node.env.now()
        envelope = Envelope(
            namespace=DEFAULT_NAMESPACE, job=stored.job.id, version=stored.job.version, queue=stored.queue,
            lane=stored.lane, priority=spec.priority, due_at=now,
        )  # fmt: skip
        lead = self._node.base.directory.lead(stored.queue, spec.priority, stored.job.id)
        lots = [
            NewBulk(
                envelope=structs.replace(envelope, due_at=now - i), rank_lead=lead, extra=Extra(origin="submit"),
                items=[b'{"i":%d}' % (self._number + lo + k) for k in range(min(per_parcel, count - lo))],
            )
            for i, lo in enumerate(range(0, count, per_parcel))
        ]  # fmt: skip
        self._number += count
        done = await self._node.store.submit([Submission(executions=lots)])
        self._node.base.parcels.add(done.parcels)
        self._node.base.hints.send(Hint(lanes=done.lanes))

    async def _work(self, count: int) -> list[UUID]:
        """Claim and report executions until enough have ended; return the id of one execution of each slice."""
        session = self._session or await self._register()
        some: list[UUID] = []
        outcomes: list[Outcome] = []
        while count or outcomes:
            self._n += 1
            up = Exchange(channel=0, n=self._n, free=min(count, AT_ONCE), outcomes=outcomes)
            answer = msgspec.json.decode(await self._node.gateway.exchange(DEFAULT_NAMESPACE, session, up), type=Answer)
            if answer.ignored or (count and not answer.slices):
                raise HoraeError(f"The store could not be filled: {count} executions were not granted.")
            outcomes = [_success(grant, answer.now) for grant in answer.slices]
            count -= sum(grant.hi - grant.lo for grant in answer.slices)
            some += [execution_id(g.parcel, g.lo + self._n % (g.hi - g.lo)) for g in answer.slices]
        return some

    async def _register(self) -> UUID:
        functions = [Function(name=JOB)]
        presence = Register(protocol=PROTOCOL, worker="bench-filler", concurrency=AT_ONCE, functions=functions)
        self._session = (await self._node.gateway.register(DEFAULT_NAMESPACE, presence)).session_id
        return self._session

    async def leave(self) -> None:
        if self._session is not None:
            await self._node.gateway.close(DEFAULT_NAMESPACE, self._session)


def _rounds(count: int, per_parcel: int) -> Iterator[int]:
    """Yield the numbers of executions per round."""
    most = max(per_parcel, min(AT_ONCE, MOST_LOTS * per_parcel) // per_parcel * per_parcel)
    for lo in range(0, count, most):
        yield min(most, count - lo)


def _success(grant: Grant, now: int) -> Outcome:
    results = [Raw(bytes(item)[5:-1]) for item in grant.items]
    return Outcome(
        parcel=grant.parcel, lo=grant.lo, hi=grant.hi, attempt=grant.attempt, outcome="success", results=results,
        started_at=_times(now, len(results)), ended_at=_times(now + 10, len(results)),
    )  # fmt: skip


def _times(first: int, count: int) -> list[int]:
    return list(range(first, first + 10 * count, 10))


@asynccontextmanager
async def filling(env: Env, url: str) -> AsyncIterator[Filler]:
    """Open a filler for the store at a URL, with the bench's jobs defined."""
    node = await ServerNode.open(env, url, owner="(horae bench)")
    try:
        await node.start({"api", "gateway"})
        for definition in app.definitions():
            await node.definitions.jobs.put(DEFAULT_NAMESPACE, definition)
        filler = Filler(node)
        yield filler
        await filler.leave()
    finally:
        await node.stop()
