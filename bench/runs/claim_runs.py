"""Claims and reports of a server's engine in one process, on stores with long queues or many lanes."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

import msgspec
from msgspec import Struct

from bench.kit.app import app
from bench.kit.fill import JOB as FILLED
from bench.kit.fill import Filler
from bench.kit.stores import Source
from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.errors import HoraeError
from horae.model.fleet.protocol import PROTOCOL, Answer, Exchange, Function, Outcome, Register
from horae.model.fleet.submit import Submit
from horae.model.tenancy.principal import DEFAULT_NAMESPACE

JOB, QUEUE = "bench-tenant", "default"
PART = 1_000  # executions that are claimed and reported at a time, before the turn of the next size


class Size(Struct, frozen=True, kw_only=True):
    """The numbers of executions per parcel, per claim and per measurement."""

    parcel: int
    deep_parcel: int
    executions: int
    free: int
    repeats: int


class Claimer:
    """A server's engine with one session, which claims and reports."""

    def __init__(self, node: ServerNode, session: UUID, size: Size) -> None:
        self._node, self._session, self._size = node, session, size
        self._filler = Filler(node)
        self._n = 0
        self._outcomes: list[Outcome] = []

    async def divide(self, count: int, lanes: int) -> None:
        """Queue executions, divided over lanes, one parcel per request."""
        parcel = self._size.parcel
        for lo in range(0, count, parcel):
            tenant = f"tenant-{lo // parcel % lanes}".encode()
            items = [b'{"i":%d,"tenant":"%b"}' % (i, tenant) for i in range(lo, lo + parcel)]
            await self._node.submitter.submit_bulk(DEFAULT_NAMESPACE, Submit(job=JOB), items, origin="submit")

    async def queue(self, count: int) -> None:
        """Queue executions in one lane, with the store's own functions."""
        await self._filler.queue(count, self._size.deep_parcel)

    async def work(self, count: int) -> float:
        """Claim and report executions; return executions per second."""
        begun, done = time.perf_counter(), 0
        while done < count:
            granted = await self._exchange(min(self._size.free, count - done))
            if not granted:
                raise HoraeError(
                    f"{count - done} executions were not granted.", "Is this machine busy with other work?"
                )
            done += granted
        await self._exchange(0)
        return count / (time.perf_counter() - begun)

    async def _exchange(self, free: int) -> int:
        self._n += 1
        up = Exchange(channel=0, n=self._n, free=free, outcomes=self._outcomes)
        text = await self._node.gateway.exchange(DEFAULT_NAMESPACE, self._session, up)
        answer = msgspec.json.decode(text, type=Answer)
        self._outcomes = [
            Outcome(parcel=g.parcel, lo=g.lo, hi=g.hi, attempt=g.attempt, outcome="success") for g in answer.slices
        ]
        return sum(grant.hi - grant.lo for grant in answer.slices)


@asynccontextmanager
async def claiming(source: Source, size: Size, *, fair: bool) -> AsyncIterator[Claimer]:
    """Open a claimer on a fresh store."""
    async with source.fresh() as url:
        node = await ServerNode.open(system_env(), url, owner="(horae bench)")
        try:
            await node.start({"api", "gateway"})
            for definition in app.definitions():
                await node.definitions.jobs.put(DEFAULT_NAMESPACE, definition)
            if fair:
                policy = {"kind": "fair", "by": "${params.tenant}"}
                await node.admission.queues.put(DEFAULT_NAMESPACE, QUEUE, {"policy": policy})
            presence = Register(
                protocol=PROTOCOL,
                worker="bench",
                concurrency=size.free,
                functions=[Function(name=JOB), Function(name=FILLED)],
            )
            session = (await node.gateway.register(DEFAULT_NAMESPACE, presence)).session_id
            yield Claimer(node, session, size)
        finally:
            await node.stop()


async def by_lanes(source: Source, counts: Sequence[int], size: Size) -> dict[int, list[float]]:
    """Return executions per second by the number of lanes in use, all equally full."""
    rates: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(size.repeats):
        async with AsyncExitStack() as stores:
            claimers = {}
            for lanes in counts:
                claimers[lanes] = await stores.enter_async_context(claiming(source, size, fair=True))
                await claimers[lanes].divide(max(3 * size.executions, 2 * lanes * size.parcel), lanes)
                await claimers[lanes].work(size.executions // 10)
            for lanes, rate in (await _in_turns(claimers, size)).items():
                rates[lanes].append(rate)
    return rates


async def by_queued(source: Source, counts: Sequence[int], size: Size) -> dict[int, list[float]]:
    """Return executions per second by the number of queued executions in one lane."""
    rates: dict[int, list[float]] = {count: [] for count in counts}
    async with AsyncExitStack() as stores:
        claimers = {}
        for count in counts:
            claimers[count] = await stores.enter_async_context(claiming(source, size, fair=False))
            await claimers[count].queue(count)
        for _ in range(size.repeats):
            for count, rate in (await _in_turns(claimers, size, again=True)).items():
                rates[count].append(rate)
    return rates


async def _in_turns(claimers: Mapping[int, Claimer], size: Size, *, again: bool = False) -> dict[int, float]:
    """Return executions per second of each claimer, measured in turns: a machine's rate drifts within seconds.

    With `again`, as many executions are queued after each part, so that the queue keeps its length; only the claims are
    timed.
    """
    spent, done = dict.fromkeys(claimers, 0.0), 0
    while done < size.executions:
        part = min(PART, size.executions - done, *(claimers if again else ()))
        for count, claimer in claimers.items():
            spent[count] += part / await claimer.work(part)
            if again:
                await claimer.queue(part)
        done += part
    return {count: done / seconds for count, seconds in spent.items()}
