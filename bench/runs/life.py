"""An execution's life in one process, each stage timed, for `python -m bench stages`."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from bench.kit.app import app
from horae.engine.definitions.params import ParamsChecker
from horae.engine.server_node import ServerNode
from horae.env import Env
from horae.errors import HoraeError
from horae.model.admission.claim_plan import LaneState
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import Envelope
from horae.model.executions.submission import NewBulk, Submission
from horae.model.fleet.protocol import PROTOCOL, Answer, Exchange, Function, Register
from horae.model.tenancy.principal import DEFAULT_NAMESPACE
from horae.server.reading import bodies
from horae.server.routes.executions import submission
from horae.store.definitions.jobs import StoredJob
from horae.store.executions.entering.placing import place
from horae.store.fleet.exchange import IncomingExchange, Reply
from horae.worker.code.tracing import AttemptTracer
from horae.worker.plan import plan_for
from horae.worker.processes.spawner import Spawner
from horae.worker.runners.base import ChunkRun
from horae.worker.runners.threads import ThreadRunner
from horae.worker.session import WorkerSession
from horae.worker.settings import WorkerSettings

JOB = "bench-noop"
LAST_CHANNEL = 7  # not used by the session: the bench's own heartbeats use it


class Shape(Struct, frozen=True):
    """The grouping of executions: executions per parcel, and parcels at once."""

    name: str
    per_parcel: int
    parcels: int
    rounds: int

    @property
    def size(self) -> int:
        return self.per_parcel * self.parcels


class Host:
    """The part of a worker that its runner needs."""

    def __init__(self, env: Env) -> None:
        self.env, self.settings, self.spawner = env, WorkerSettings(), Spawner()
        self.tracing: AttemptTracer | None = None
        self._loop = asyncio.get_running_loop()
        self.idle = asyncio.Event()

    def post(self, call: Callable[..., object], *args: Any) -> None:
        self._loop.call_soon_threadsafe(call, *args)

    def release_slot(self, run: ChunkRun) -> None:
        run.is_over = True
        run.session.finish(run.chunk)
        self.idle.set()

    def after(self, seconds: float, call: Callable[..., object], *args: Any) -> Any:
        raise NotImplementedError("the bench's job has no timeout")

    def report_stuck(self, run: ChunkRun) -> None:
        raise NotImplementedError("nothing is stopped")

    def ask(self, session: WorkerSession, item: Any, ask: Any) -> Any:
        raise NotImplementedError("the bench's job asks nothing")


class Life:
    """Executions of one session, from request to history, repeatedly."""

    def __init__(self, node: ServerNode, stored: StoredJob, session: WorkerSession, shape: Shape) -> None:
        self._node, self._store, self._stored, self._session, self._shape = node, node.store, stored, session, shape
        self._took: dict[str, list[float]] = {}
        self._runner = ThreadRunner(Host(node.env))
        self._params = ParamsChecker()
        self._submission = msgspec.json.Decoder(submission.SubmissionBody)
        self._exchange, self._answer = msgspec.json.Decoder(Exchange), msgspec.json.Decoder(Answer)
        self._lots = list(self._make_lots())
        self._bodies = [self._body(lot.items) for lot in self._lots]
        self._heartbeats = 0

    def stages(self) -> dict[str, list[float]]:
        """Return microseconds per execution of every round, by stage, in the order of a life."""
        return self._took

    async def round(self) -> None:
        """Run one load through all stages."""
        await self._submit()
        asked = self._next()
        reply, views = await self._claim(asked)
        known = await self._node.fleet.sessions.get(DEFAULT_NAMESPACE, self._session.id)
        with self._timed("server: encode answer"):
            encoded = await self._node.fleet.answers.encode(reply.granted, known.session)
        with self._timed("worker: decode answer"):
            answer = self._answer.decode(encoded)
        with self._timed("worker: take in"):
            self._session.answered(asked, answer, self._node.env.clock.monotonic())
        await self._call()
        with self._timed("worker: gather report"):
            told = self._next()
        with self._timed("worker: encode report"):
            up = msgspec.json.encode(told)
        with self._timed("server: decode report"):
            report = self._exchange.decode(up)
        with self._timed("store: settle +"):
            await self._store.exchange(
                [self._head(report)], views, frozenset(), self._node.base.directory.definitions.policies
            )
        self._session.answered(told, Answer(now=self._node.env.now()), self._node.env.clock.monotonic())
        await self._heartbeat()

    async def _submit(self) -> None:
        now = self._node.env.now()
        with self._timed("server: decode request"):
            for body in self._bodies:
                bodies.decode(body, self._submission)
        with self._timed("engine: check params"):
            for lot in self._lots:
                await self._params.check_all(lot.items, self._stored.job)
        lots = [structs.replace(lot, envelope=_due(lot.envelope, now - i)) for i, lot in enumerate(self._lots)]
        with self._timed("store: form parcels"):
            place(lots, {}, self._node.env.new_id, now)
        with self._timed("store: submit +"):
            done = await self._store.submit([Submission(executions=[lot]) for lot in lots])
        self._node.fleet.answers.parcels.add(done.parcels)

    async def _claim(self, asked: Exchange) -> tuple[Reply, list[LaneState]]:
        views = [LaneState(lane=self._stored.lane, mean=float(self._shape.per_parcel))]
        policies = self._node.base.directory.definitions.policies
        with self._timed("store: claim +"):
            done = await self._store.exchange([self._head(asked)], views, frozenset(), policies)
        granted = sum(s.hi - s.lo for s in done.replies[0].granted)
        if granted != self._shape.size:
            raise HoraeError(f"{granted} of {self._shape.size} executions were granted.")
        return done.replies[0], views

    async def _call(self) -> None:
        """Call the function through the runner's thread and back, as the worker does it."""
        host = self._runner.host
        assert isinstance(host, Host)
        with self._timed("worker: call"):
            while chunk := self._session.take():
                chunk.backlog.plan = chunk.backlog.plan or plan_for(chunk.backlog, app)
                host.idle.clear()
                self._runner.launch(self._session, chunk, chunk.backlog.plan)
                await host.idle.wait()

    async def _heartbeat(self) -> None:
        """Time the smallest transaction: one small row."""
        self._heartbeats += 1
        with self._timed("commit alone"):
            await self._store.answer_empty([(self._session.id, LAST_CHANNEL, self._heartbeats)])

    def _head(self, exchange: Exchange) -> IncomingExchange:
        lanes = frozenset({self._stored.lane})
        return IncomingExchange(session=self._session.id, exchange=exchange, lanes=lanes, patient=False)

    def _next(self) -> Exchange:
        exchange = self._session.next_exchange()
        if exchange is None:
            raise HoraeError("The worker's session has nothing to say.")
        return exchange

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        took = (time.perf_counter() - begun) * 1e6 / self._shape.size
        self._took.setdefault(stage, []).append(took)

    def _make_lots(self) -> Iterator[NewBulk]:
        spec = self._stored.job.spec
        envelope = Envelope(
            namespace=DEFAULT_NAMESPACE, job=self._stored.job.id, version=self._stored.job.version,
            queue=self._stored.queue, lane=self._stored.lane, priority=spec.priority, due_at=0,
        )  # fmt: skip
        lead = self._node.base.directory.lead(self._stored.queue, spec.priority, self._stored.job.id)
        for _ in range(self._shape.parcels):
            items = [b'{"i":%d}' % i for i in range(self._shape.per_parcel)]
            yield NewBulk(envelope=envelope, rank_lead=lead, items=items, extra=Extra(origin="submit"))

    def _body(self, items: Any) -> bytes:
        if len(items) == 1:
            return msgspec.json.encode({"job": JOB, "params": Raw(items[0])})
        return msgspec.json.encode({"job": JOB, "items": [Raw(item) for item in items]})


def _due(envelope: Envelope, at: int) -> Envelope:
    """Return an envelope with another due instant; different envelopes never share a parcel."""
    return structs.replace(envelope, due_at=at)


@asynccontextmanager
async def living(env: Env, url: str, shape: Shape) -> AsyncIterator[Life]:
    """Open a node on a store, with a session, for as long as the block lasts."""
    node = await ServerNode.open(env, url, owner="(horae bench)")
    try:
        await node.prepare()
        for definition in app.definitions():
            await node.definitions.jobs.put(DEFAULT_NAMESPACE, definition)
        stored = await node.base.directory.jobs.get(DEFAULT_NAMESPACE, JOB)
        presence = Register(
            protocol=PROTOCOL, worker="bench", concurrency=shape.size, functions=[Function(name=JOB)]
        )  # fmt: skip
        registered = await node.gateway.register(DEFAULT_NAMESPACE, presence)
        yield Life(node, stored, WorkerSession(env.clock, registered, shape.size), shape)
    finally:
        await node.stop()
