"""The worker's loop: it registers, exchanges, hands chunks to runners, and leaves in good order."""

import asyncio
import os
import platform
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Literal, TypeVar

import structlog

from horae.env import SECOND, Env, Micros
from horae.errors import BadInput, HoraeError
from horae.model.admission.placement.placement import Cost
from horae.model.fleet.protocol import Exchange
from horae.worker.attempt_reports import attempt_reporter
from horae.worker.code.execution_requests import ExecutionRequest
from horae.worker.code.failure import failed, format_traceback
from horae.worker.code.request_sender import RequestSender
from horae.worker.code.tracing import TracerFactory
from horae.worker.exchange.delivery import FATAL, FIRST_WAIT, LOST, Deliveries
from horae.worker.holding import Chunk, Item
from horae.worker.interrupts import Interrupt
from horae.worker.logs import capture
from horae.worker.notices.notice import TerminationNotice, end_text, time_left
from horae.worker.pace import DurationEstimates
from horae.worker.plan import PreparedJob, plan_for
from horae.worker.processes.spawner import Spawner
from horae.worker.runners.base import BaseRunner, ChunkRun
from horae.worker.runners.table import runners_for
from horae.worker.secrets import SecretProviders, SecretUnavailable
from horae.worker.session import WorkerSession
from horae.worker.settings import Registry, WorkerSettings, registration
from horae.worker.timers import ScheduledCall, Timers
from horae.worker.transport import Transport

log = structlog.get_logger("horae.worker")

LAST_WAIT = 1.0  # seconds before a repetition, at most
PARTING = 10.0  # seconds after all grace times, after which a drain ends even if no server answers

T = TypeVar("T")
End = Literal["drained", "aborted", "replace"]


class WorkerRuntime:
    """One worker process; `run()` works until it is drained, aborted or refused."""

    def __init__(
        self, env: Env, settings: WorkerSettings, transport: Transport, registry: Registry, tracer: TracerFactory = None
    ) -> None:
        self.env = env
        self.settings = settings
        self.session: WorkerSession | None = None
        self.name = settings.name or f"{platform.node()}-{os.getpid()}"
        self._transport = transport
        self._requests = RequestSender(env, transport, self._back_off)
        self._deliveries = Deliveries(env, transport, self._back_off)
        self._registry = registry
        self.tracing = None if tracer is None else tracer(self.name)
        self._on_ended = attempt_reporter(self.tracing, verbose=settings.verbose)
        self.spawner = Spawner()
        self._secrets = SecretProviders(settings.secret_env, settings.secret_files)
        self._pace = DurationEstimates()
        self._timers = Timers(env.clock)
        self._runners: dict[str, BaseRunner] = {}
        self._inbox: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._posted = False
        self._turning = False
        self._wakes_at: float | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._strays: list[Cost] = []  # resources of chunks that still run for ended sessions
        self._draining = False
        self._replacing = False
        self._parting = False
        self._end: End | None = None
        self._done: asyncio.Future[End] | None = None  # while it runs

    # Calls of the owner

    async def run(self) -> End:
        """Work until the worker has left. Raises the error with which servers refuse this worker."""
        self._loop = asyncio.get_running_loop()
        self._done = self._loop.create_future()
        if self._end is not None:
            return self._end
        self._runners = runners_for(self)
        capture.install()
        try:
            self._spawn(self._register())
            return await self._done
        finally:
            await self._close()

    def drain(self, within: Micros | None = None) -> None:
        """Stop claiming, hand back unstarted and preemptible items, finish other items in the grace time, and leave.

        `within` is the time until this machine is taken away; it replaces the grace time. A second call only sets
        another such limit.
        """
        if self._draining and within is None:
            return
        first, self._draining = not self._draining, True
        if self.session is None:
            return self._leave("drained")
        self._timers.after(self._grace(within) / SECOND, self._end_grace)
        if first:
            self.session.drain()
            self._interrupt(self.session.interrupt_preemptible("drain"))
        return self._stir()

    def leave_by(self, notice: TerminationNotice) -> None:
        """Leave before this machine is taken away."""
        log.warning("this machine will be taken away", at=end_text(notice))
        self.drain(time_left(notice, self.env.clock.wall()))

    def _grace(self, within: Micros | None) -> Micros:
        """Return the time for which running items may continue.

        Items that are stopped after this time have a grace time of their own, for which `within` must leave time.
        """
        return self.settings.grace if within is None else max(0, within - self._longest_grace())

    def abort(self) -> None:
        """Stop everything and leave at once. The servers notice this when the session times out."""
        self._leave("aborted")

    # Calls of runners

    def post(self, call: Callable[..., object], *args: Any) -> None:
        """Make a call on the loop's thread, from any thread, in order."""
        self._inbox.append((call, args))
        if not self._posted:
            self._posted = True
            try:
                self._loop.call_soon_threadsafe(self._receive)
            except RuntimeError:
                self._inbox.clear()  # the loop is closed: the calls have no effect any more

    def after(self, seconds: float, call: Callable[..., object], *args: Any) -> ScheduledCall:
        """Make a call on the loop after this many seconds, and handle its effects in a turn of the loop."""
        return self._timers.after(seconds, self._ring, call, args)

    def _ring(self, call: Callable[..., object], args: tuple[Any, ...]) -> None:
        call(*args)
        self._stir()

    def release_slot(self, run: ChunkRun) -> None:
        """Take a chunk back from the slot that ran it."""
        run.is_over = True
        if run.watch is not None:
            run.watch.cancel()
        run.session.finish(run.chunk)
        if (
            run.session is not self.session and run.chunk.backlog.cost in self._strays
        ):  # it was not added if the worker leaves
            self._strays.remove(run.chunk.backlog.cost)
            if self.session is not None:
                self.session.stock.give_back(run.chunk.backlog.cost)
        self._stir()

    def report_stuck(self, run: ChunkRun) -> None:
        """Drain this worker because an execution cannot be stopped, so that the parent process starts a new worker."""
        begun = run.chunk.running()
        about = {"job": run.plan.spec.name} if begun is None else run.log_fields(begun)
        log.warning("an execution cannot be stopped", **about, replacing=self.settings.replace)
        if self.settings.replace and not self._draining:
            self._replacing = True
            self.drain()

    def ask(self, session: WorkerSession, item: Item, ask: ExecutionRequest) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(self._requests.run(session, item, ask), self._loop)

    # Registering

    async def _register(self) -> None:
        """Register this worker, repeatedly until a server accepts it."""
        wait, message = FIRST_WAIT, ""
        while not self._is_leaving:
            try:
                registered = await self._transport.register(registration(self.name, self.settings, self._registry))
            except (*FATAL, BadInput) as error:
                self._refuse(error)
                return
            except HoraeError as error:
                if str(error) != message:
                    log.warning("cannot register", error=str(error))
                message = str(error)
                wait = await self._back_off(wait)
                continue
            self._transport.add_servers(registered.servers)
            slots, resources = self.settings.concurrency, self.settings.resources
            self.session = WorkerSession(self.env.clock, registered, slots, self._pace, resources, self._on_ended)
            for cost in self._strays:
                self.session.stock.take_up(cost)
            if self._draining:
                self.session.drain()
            log.info("registered", session=str(registered.session_id), worker=self.name)
            self._stir()
            return

    def _lose(self, session: WorkerSession) -> None:
        """Stop everything of an ended session, forget it and register again."""
        if session is not self.session or self._is_leaving:
            return
        log.warning("the session has ended", session=str(session.id), running=len(session.stock.chunks))
        self._strays += [chunk.backlog.cost for chunk in session.stock.chunks]
        self.session = None
        self._interrupt(session.end())
        if self._draining:
            self._leave("drained")
        else:
            self._spawn(self._register())

    # Turning

    def _stir(self) -> None:
        """Schedule a turn of the loop."""
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._receive()  # posted calls come first: log lines before the outcome of their item
        self._turning = False
        session = self.session
        if session is None or self._is_leaving:
            return
        self._fill_slots(session)
        while exchange := session.next_exchange():
            self._spawn(self._send(session, exchange))
        if session.is_drained and not self._parting:
            self._parting = True
            self._spawn(self._part(session))
        self._sleep_until(session.wake_at())

    def _sleep_until(self, when: float | None) -> None:
        if when is not None and (self._wakes_at is None or when < self._wakes_at):
            self._wakes_at = when
            self._timers.at(when, self._wake, when)

    def _wake(self, when: float) -> None:
        if self._wakes_at == when:
            self._wakes_at = None
        if self.session is not None:
            self._fill_slots(self.session)
            self.session.tick()
        self._stir()

    def _fill_slots(self, session: WorkerSession) -> None:
        while chunk := session.take():
            self._launch(session, chunk)

    def _launch(self, session: WorkerSession, chunk: Chunk) -> None:
        plan: PreparedJob = chunk.backlog.plan or plan_for(chunk.backlog, self._registry)
        chunk.backlog.plan = plan
        if (chunk.backlog.references or chunk.backlog.is_sensitive) and not self._has_secrets(session, chunk):
            return session.finish(chunk)
        try:
            self._runners[plan.kind].launch(session, chunk, plan)
        except Exception as error:
            hide = chunk.backlog.secrets.mask_text if chunk.backlog.secrets is not None else str
            log.error("cannot begin a chunk", job=plan.spec.name, traceback=hide(format_traceback(error, whole=True)))
            fate = failed("CannotStart", f"the worker could not start the execution: {error}", kind="platform")
            while begun := chunk.begin(self.env.clock.monotonic()):
                chunk.end(begun, self.env.clock.monotonic(), fate)
            session.finish(chunk)

    def _has_secrets(self, session: WorkerSession, chunk: Chunk) -> bool:
        """Look up the secrets of every item and end items that lack one; return whether any item is left."""
        for item in list(chunk.left):
            try:
                item[0].provide(self._secrets)
            except SecretUnavailable as error:
                chunk.left.remove(item)
                session.refuse(item, failed(error.failure, str(error), kind="platform"))
        return bool(chunk.left)

    def _receive(self) -> None:
        self._posted = False
        while self._inbox:
            call, args = self._inbox.popleft()
            call(*args)
        self._stir()

    def _interrupt(self, interrupts: list[Interrupt]) -> None:
        for interrupt in interrupts:
            run = interrupt.chunk.run
            if run is not None and not run.is_over:
                self._runners[run.plan.kind].interrupt(run, interrupt.begun, interrupt.kind)

    def _end_grace(self) -> None:
        """Stop and hand back all items that still run. After their own grace times, the worker leaves in any case."""
        longest = self._longest_grace()
        if self.session is not None:
            self._interrupt(self.session.interrupt_all("drain"))
            self._stir()
        self._timers.after(longest / SECOND + PARTING, self._leave, "drained")

    def _longest_grace(self) -> Micros:
        chunks = () if self.session is None else self.session.stock.chunks
        return max((chunk.backlog.plan.spec.grace for chunk in chunks), default=0)

    # Exchanging

    async def _send(self, session: WorkerSession, exchange: Exchange) -> None:
        """Deliver an exchange, and apply its answer."""
        delivered = await self._exchanged(session, self._deliveries.exchange(session, exchange))
        if delivered is None:
            return
        if delivered.reattach:
            self._spawn(self._reattach(session))
        self._interrupt(delivered.interrupts)
        if delivered.drain:
            self.drain()
        self._stir()

    async def _reattach(self, session: WorkerSession) -> None:
        """Let a session continue after a failover of the store."""
        interrupts = await self._exchanged(session, self._deliveries.reattach(session))
        if interrupts is not None:
            self._interrupt(interrupts)
            for exchange in session.unanswered():
                self._spawn(self._send(session, exchange))
            self._stir()

    async def _exchanged(self, session: WorkerSession, delivery: Awaitable[T]) -> T | None:
        """Return the result of a delivery; None if its session has ended, or servers refuse this worker."""
        try:
            return await delivery
        except LOST:
            self._lose(session)
        except FATAL as error:
            self._refuse(error)
        return None

    async def _back_off(self, wait: float) -> float:
        """Wait for about `wait` seconds; return a longer time for the next wait."""
        await self.env.clock.sleep(wait * self.env.rng.uniform(0.5, 1.0))
        return min(LAST_WAIT, wait * 2)

    # Leaving

    async def _part(self, session: WorkerSession) -> None:
        """End the session after everything is reported."""
        try:
            await self._transport.close_session(session.id)
        except HoraeError as error:
            log.info("the server did not receive the end of the session", error=str(error))
        self._leave("drained")

    def _leave(self, end: End) -> None:
        self._end = self._end or ("replace" if end == "drained" and self._replacing else end)
        if self._done is not None and not self._done.done():
            self._done.set_result(self._end)

    def _refuse(self, error: BaseException) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)

    @property
    def _is_leaving(self) -> bool:
        return self._done is None or self._done.done()

    async def _close(self) -> None:
        """Stop everything that still runs, and release all resources."""
        session, self.session = self.session, None
        if session is not None:
            self._interrupt(session.end())
        for runner in dict.fromkeys(self._runners.values()):
            await runner.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._requests.close()
        self._timers.close()
        await self.spawner.close()
        await self._transport.close()
        capture.uninstall()

    def _spawn(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        """Stop the worker on an unexpected error of a task, rather than leave it half alive."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._refuse(error)
