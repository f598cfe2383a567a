"""A child process of a worker: it takes one order at a time and runs it in its main thread.

`python -m horae.worker.processes.child`; descriptor 3 is the socket to the worker. The process ends when that closes.
"""

import asyncio
import importlib
import inspect
import itertools
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

import msgspec

from horae.model.base.redaction import Redactor
from horae.model.base.trace import TraceHeaders
from horae.model.definitions.function_signature import Bind, signature_of
from horae.model.executions.job_exceptions import Cancelled
from horae.model.fleet.protocol import LogStream
from horae.worker.code.context import CURRENT, Context
from horae.worker.code.current_trace import current_trace
from horae.worker.code.execution_requests import ExecutionRequest
from horae.worker.code.failure import outcome_of
from horae.worker.holding import ItemOutcome
from horae.worker.logs import capture
from horae.worker.processes.frames import (
    HEADER,
    AnswerFrame,
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
    decode_answer,
    decode_down,
    encode_frame,
)
from horae.worker.processes.guard import prctl
from horae.worker.runners.outcome import encoded

SOCKET = 3
PR_SET_PDEATHSIG = 1


class WorkerConnection:
    """The connection from an execution in this process to the worker that ordered it."""

    def __init__(self, child: "ChildRuntime", redactor: Redactor | None) -> None:
        self._child = child
        self._redactor = redactor
        self.interrupted: str | None = None

    def heartbeat(self) -> None:
        self._child.send(HeartbeatFrame())

    def progress(self, percent: float, message: str) -> None:
        self._child.send(ProgressFrame(percent, message))

    def log(self, stream: LogStream, text: str) -> None:
        self._child.send(LogFrame(stream, text))

    def hide(self, text: str) -> str:
        return text if self._redactor is None else self._redactor.text(text)

    def ask(self, ask: ExecutionRequest) -> "Future[Any]":
        return self._child.ask(ask)


class ChildRuntime:
    """The child's state: its socket, the present order, and its unanswered requests."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = threading.Lock()
        self._orders: SimpleQueue[OrderFrame] = SimpleQueue()
        self._asked: dict[int, tuple[ExecutionRequest, Future[Any]]] = {}
        self._ids = itertools.count(1)
        self._port: WorkerConnection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._binders: dict[tuple[str, bytes], Bind] = {}
        self._is_interruptible = False  # whether a sync function runs, so that SIGTERM interrupts it

    def run(self) -> None:
        """Work until the worker is gone."""
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        capture.install()
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            order = self._orders.get()
            ended = self._execute(order)
            sys.stdout.flush()
            sys.stderr.flush()
            self.send(ended)

    def send(self, message: Up) -> None:
        with self._sending:
            self._sock.sendall(encode_frame(message))

    def ask(self, ask: ExecutionRequest) -> "Future[Any]":
        request_id, future = next(self._ids), Future[Any]()
        self._asked[request_id] = ask, future
        self.send(RequestFrame(request_id, ask))
        return future

    # Orders

    def _execute(self, order: OrderFrame) -> EndFrame:
        self._port = port = WorkerConnection(self, Redactor(order.secrets.values()) if order.secrets else None)
        context = Context(order.facts, port, order.secrets)
        retry = None
        try:
            entry = load_function(order.module, order.function)
            retry = entry.retry_function
            CURRENT.set(lambda: context)
            with current_trace(TraceHeaders(order.facts.trace, order.facts.trace_state)):
                outcome = self._call(entry, context)
        except BaseException as error:
            outcome = outcome_of(error, retry, order.facts.failures + 1)
        finally:
            self._is_interruptible = False
            self._port = None
        return EndFrame(fate=outcome) if isinstance(outcome, ItemOutcome) else EndFrame(result=outcome)

    def _call(self, entry: Any, context: Context) -> bytes | ItemOutcome:
        facts = context._facts
        args, kwargs = self._binder(entry, bytes(facts.defaults))(facts.params, context)
        if inspect.iscoroutinefunction(inspect.unwrap(entry.function)):
            value = asyncio.run(self._awaited(entry.function, args, kwargs, context))
        else:
            self._is_interruptible = True
            context.raise_if_cancelled()  # a request to stop that came during the import had no effect
            value = entry.function(*args, **kwargs)
            self._is_interruptible = False
        context._check_done()
        return encoded(value)

    def _binder(self, entry: Any, defaults: bytes) -> Bind:
        key = (entry.signature.function, defaults)
        if key not in self._binders:
            self._binders[key] = entry.signature.binder(msgspec.json.decode(defaults))
        return self._binders[key]

    async def _awaited(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], context: Context
    ) -> Any:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        try:
            context.raise_if_cancelled()
            return await function(*args, **kwargs)
        except asyncio.CancelledError:
            raise Cancelled from None
        finally:
            self._loop = self._task = None

    def _on_term(self, *_: object) -> None:
        """Interrupt a sync function, or end an idle child. An async function is cancelled by `_stop`."""
        if self._is_interruptible:
            raise Cancelled("stopped by request")
        if self._port is None:
            os._exit(0)
        # Assume "cancel" until the StopFrame arrives, which says the kind of the stop.
        self._port.interrupted = self._port.interrupted or "cancel"

    # Messages of the worker

    def _listen(self) -> None:
        try:
            while True:
                self._handle(decode_down(self._read(HEADER.unpack(self._read(HEADER.size))[0])))
        except (EOFError, OSError):
            os._exit(0)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._sock.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def _handle(self, message: Any) -> None:
        if isinstance(message, OrderFrame):
            self._orders.put(message)
        elif isinstance(message, AnswerFrame):
            self._settle(message)
        elif isinstance(message, HelloFrame):
            sys.path[:] = message.path
            os.environ.update(message.env)
            self.send(ReadyFrame())
        elif isinstance(message, StopFrame):
            self._stop(message.kind)

    def _stop(self, kind: str) -> None:
        port, loop, task = self._port, self._loop, self._task
        if port is not None:
            port.interrupted = kind
        if loop is not None and task is not None:
            loop.call_soon_threadsafe(task.cancel)

    def _settle(self, reply: AnswerFrame) -> None:
        ask, future = self._asked.pop(reply.id)
        if future.done():
            return  # the caller was cancelled
        if reply.error is not None:
            future.set_exception(RuntimeError(reply.error))
        else:
            future.set_result(decode_answer(ask, reply))


def load_function(module: str, name: str) -> Any:
    """Return the registered function of this name; a bare function is wrapped as one."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found if hasattr(found, "signature") and hasattr(found, "function") else _Bare(found)


class _Bare:
    """A function without a registration."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.signature, self.retry_function = function, signature_of(function), None


def main() -> None:
    """Run the child.

    If the guard (the process that started the child) dies, the kernel kills the child. If the worker dies, the socket
    closes and the child exits.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    ChildRuntime(socket.socket(fileno=SOCKET)).run()


if __name__ == "__main__":
    main()
