"""Functions in child processes: a crash, a leak or a blocked interpreter affects one execution, not the worker.

Children are started when needed, reused, and ended after some idle time.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from horae.env import SECOND
from horae.model.definitions.resource_limits import NO_LIMITS, ResourceLimits
from horae.worker.code.failure import failed
from horae.worker.environ import split_environment
from horae.worker.holding import ItemOutcome, StartedItem
from horae.worker.logs.lines import PAUSE, Output, OutputMeter
from horae.worker.logs.log_queue import BACKLOG
from horae.worker.processes.bounds import ProcessBounds
from horae.worker.processes.frames import (
    HEADER,
    Down,
    EndFrame,
    HeartbeatFrame,
    HelloFrame,
    LogFrame,
    OrderFrame,
    ProgressFrame,
    ReadyFrame,
    RequestFrame,
    StopFrame,
    Up,
    decode_up,
    encode_frame,
    reply_to,
)
from horae.worker.processes.frames import AnswerFrame as AskReply
from horae.worker.processes.spawner import ChildProcess, GuardDied, SpawnFailed
from horae.worker.runners.base import ChunkRun, LocalPort, RunnerHost
from horae.worker.runners.tasks import TaskRunner

IDLE = 60.0  # seconds after which an idle child is ended
START = 30.0  # seconds that a child may take to start
PROGRAM = (sys.executable, "-m", "horae.worker.processes.child")


class FunctionProcess:
    """A child process with its connection. `is_alive` is true until its end is noticed."""

    def __init__(self, host: RunnerHost, run: ChunkRun) -> None:
        self._host = host
        limits = run.plan.limits
        self.is_limited = limits != NO_LIMITS  # the job has limits: the process serves one execution only
        self.bounds = ProcessBounds(limits, limits.over(shared_limits(host.settings.limits)))
        self._outputs = [Output(host, run.session, stream) for stream in ("stdout", "stderr")]
        self._process: ChildProcess | None = None
        self._wrote_too_much = False
        most = self.bounds.all.output
        self._meter = None if most is None else OutputMeter(most, self._too_much)
        for output in self._outputs:
            output.meter = self._meter
        self._sock: socket.socket | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.is_alive = False
        self.orders = 0  # count of orders; distinguishes uses of this process

    async def start(self) -> None:
        """Start the process and wait until it takes orders. Raises if it cannot start."""
        self._sock, its = socket.socketpair()
        self._sock.setblocking(False)
        opened, hidden = split_environment(os.environ)
        with its:
            fds = [output.writer for output in self._outputs]
            self._process = await self._host.spawner.spawn(
                PROGRAM, opened, None, [*fds, its.fileno()], self.bounds.frame()
            )
        for output in self._outputs:
            output.close_writer()
        self._reader, self._writer = await asyncio.open_connection(sock=self._sock)
        self.is_alive = True
        self.send(HelloFrame([entry or os.getcwd() for entry in sys.path], hidden))
        async with asyncio.timeout(START):
            if not isinstance(await self.receive(), ReadyFrame):
                raise GuardDied("the child process did not start")

    def send(self, message: Down) -> None:
        if self.is_alive and self._writer is not None:
            self._writer.write(encode_frame(message))

    async def receive(self) -> Up | None:
        """Return the next message, or None when the child is gone."""
        try:
            size = HEADER.unpack(await self._reader.readexactly(HEADER.size))[0]
            message: Up = decode_up(await self._reader.readexactly(size))
            return message
        except (asyncio.IncompleteReadError, OSError):
            self.is_alive = False
            return None

    def serve(self, run: ChunkRun, port: LocalPort | None) -> None:
        """Send printed text to this execution's log from now on; without a port, drop it."""
        for output in self._outputs:
            output.assign(run.session, port.journal if port is not None else None)

    def stop(self, kind: str, grace: float) -> None:
        """Ask the function to stop, and kill the process after the grace time."""
        self.send(StopFrame(kind))
        if self._process is not None:
            self._process.terminate()
            self._host.after(0 if kind == "lost" else grace, self._kill_if, self.orders)

    @property
    def is_fit(self) -> bool:
        """Return whether the process can take an order: an idle process may have been ended from outside."""
        return self.is_alive and self._process is not None and not self._process.exited.done()

    def limit_failure(self, status: int | None) -> ItemOutcome | None:
        """Return the failure of a process that was ended for exceeding a limit, if it was."""
        if self._process is not None and self._process.exceeded is not None:
            return self.bounds.failure_of(*self._process.exceeded)
        limit = "output" if self._wrote_too_much else self.bounds.limit_of(status or 0)
        return self.bounds.failure_of(limit) if limit else None

    def count_logged(self, text: str) -> None:
        """Count a log record towards the limit of the output, together with the printed text."""
        if self._meter is not None:
            self._meter.add(len(text.encode(errors="replace")))

    def output_failure(self) -> ItemOutcome | None:
        """Return the failure of a function that has ended after it wrote too much, if it did."""
        if self._meter is None:
            return None
        for output in self._outputs:
            output.drain()
        return self.bounds.failure_of("output") if self._wrote_too_much else None

    def _too_much(self) -> None:
        self._wrote_too_much = True
        if self._process is not None:
            self._process.kill()

    async def bury(self) -> int | None:
        """Kill the process and everything it has started; return its exit status, if the guard knows it."""
        status = None
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(GuardDied):
                status = await asyncio.shield(self._process.exited)
        if self._writer is not None:
            self._writer.close()
        elif self._sock is not None:
            self._sock.close()
        self.is_alive = False
        for output in self._outputs:
            output.close()
        return status

    def _kill_if(self, orders: int) -> None:
        if self.is_alive and self.orders == orders and self._process is not None:
            self._process.kill()


class ProcessRunner(TaskRunner):
    """Runs one child process per busy slot."""

    is_always_ready: ClassVar[bool] = False

    def __init__(self, host: RunnerHost) -> None:
        super().__init__(host)
        self._idle: list[FunctionProcess] = []
        self._reserved: dict[ChunkRun, FunctionProcess | None] = {}
        self._burying: set[asyncio.Task[Any]] = set()

    def stop(self, run: ChunkRun, begun: StartedItem, kind: str) -> None:
        kid = run.grip_of(begun)
        if isinstance(kid, FunctionProcess):
            kid.stop(kind, run.plan.spec.grace / SECOND)

    async def ready(self, run: ChunkRun) -> bool:
        """Reserve a child before the time of an item starts to count. If none starts, `run_item` fails the item."""
        kid = self._reserved.get(run)
        if (kid is None or not kid.is_alive) and run.chunk.left:
            spare = self._take() if run.plan.limits == NO_LIMITS else None
            self._reserved[run] = spare or await self._start(run)
        return True

    def done(self, run: ChunkRun) -> None:
        kid = self._reserved.pop(run, None)
        if kid is not None and kid.is_limited:
            self._bury(kid)
        elif kid is not None and kid.is_alive:
            self._idle.append(kid)
            self.host.after(IDLE, self._retire, kid, kid.orders)

    async def _start(self, run: ChunkRun) -> FunctionProcess | None:
        kid = FunctionProcess(self.host, run)
        try:
            await kid.start()
        except BaseException as error:
            self._bury(kid)
            if isinstance(error, GuardDied | SpawnFailed | TimeoutError | OSError):
                return None
            raise
        return kid

    async def run_item(self, run: ChunkRun, begun: StartedItem) -> bytes | ItemOutcome:
        kid = self._reserved.get(run)
        if kid is None:
            message = "no child process could be started; the worker's error output says why"
            return failed("WorkerProcessDied", message, kind="platform")
        context = run.context_of(begun)
        port = context._port
        assert isinstance(port, LocalPort)
        run.hold(begun, kid)
        kid.orders += 1
        kid.serve(run, port)
        function = run.plan.function
        kid.send(OrderFrame(function.__module__, function.__qualname__, context._facts, dict(context._secrets)))
        outcome: bytes | ItemOutcome | None = None
        try:
            outcome = await self._listen(kid, run, port)
        finally:
            if outcome is None or begun in run.interrupts or not kid.is_alive or kid.is_limited:
                self._reserved.pop(run)  # an interrupted process may be in any state
                self._bury(kid)
            else:
                kid.serve(run, None)
        return outcome

    async def close(self) -> None:
        await super().close()
        for kid in self._idle:
            self._bury(kid)
        if self._burying:
            await asyncio.wait(self._burying, timeout=5)

    async def _listen(self, kid: FunctionProcess, run: ChunkRun, port: LocalPort) -> bytes | ItemOutcome:
        """Handle messages of the child until it is done or gone."""
        while (message := await kid.receive()) is not None:
            if isinstance(message, EndFrame):
                return kid.output_failure() or (message.result if message.fate is None else message.fate)
            if isinstance(message, LogFrame):
                kid.count_logged(message.text)
                port.log(message.stream, message.text)
                await self._catch_up(run, port)
            elif isinstance(message, HeartbeatFrame):
                port.heartbeat()
            elif isinstance(message, ProgressFrame):
                port.progress(message.percent, message.message)
            elif isinstance(message, RequestFrame):
                answer = port.ask(message.ask)
                answer.add_done_callback(_answering(self.host, kid, message.id))
        status = await kid.bury()
        return kid.limit_failure(status) or death_failure(status)

    async def _catch_up(self, run: ChunkRun, port: LocalPort) -> None:
        """Stop reading from a child while servers do not keep up with this worker's log lines, so that the child waits.

        The child counts as alive meanwhile, because its signs of life are not read.
        """
        while run.session.outbox.logs.bytes > BACKLOG and run.session.fence > self.clock.monotonic():
            await self.clock.sleep(PAUSE)
            port.heartbeat()

    def _take(self) -> FunctionProcess | None:
        while self._idle:
            kid = self._idle.pop()
            if kid.is_fit:
                return kid
            self._bury(kid)
        return None

    def _retire(self, kid: FunctionProcess, orders: int) -> None:
        if kid in self._idle and kid.orders == orders:
            self._idle.remove(kid)
            self._bury(kid)

    def _bury(self, kid: FunctionProcess) -> None:
        task = asyncio.get_running_loop().create_task(kid.bury())
        self._burying.add(task)
        task.add_done_callback(self._burying.discard)


def _answering(host: RunnerHost, kid: FunctionProcess, request_id: int) -> Callable[[Any], None]:
    def answer(future: Any) -> None:
        error = future.exception()
        reply = AskReply(request_id, error=str(error)) if error is not None else reply_to(request_id, future.result())
        host.post(kid.send, reply)

    return answer


def shared_limits(limits: ResourceLimits) -> ResourceLimits:
    """Return those limits of a worker that also suit a child process that runs several executions in turn."""
    return ResourceLimits(memory=limits.memory, processes=limits.processes)


def death_failure(status: int | None) -> ItemOutcome:
    """Return the failure of an execution whose child process died."""
    if status is None:
        how = "it is gone"
    elif status < 0:
        how = f"killed by {signal.Signals(-status).name if -status in set(signal.Signals) else -status}"
    else:
        how = f"exit code {status}"
    return failed("WorkerProcessDied", f"the process of the execution died: {how}")
