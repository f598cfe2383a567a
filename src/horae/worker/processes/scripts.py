"""Scripts of durable code: written once, run for async functions on the loop and for sync functions in their thread.

A script is a generator. It yields operations (a request to the session, a call of the user's function, or other scripts
to run concurrently) and receives their results. So `await ctx.step(...)` and `ctx.sync.step(...)` share one
implementation.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from msgspec import Struct

from horae.model.executions.job_exceptions import Suspended, combine_waits
from horae.worker.code.execution_requests import ExecutionPort, ExecutionRequest

MOST_THREADS = 32  # threads for concurrent steps of a sync function

T = TypeVar("T")


class FunctionCall(Struct, frozen=True):
    """A call of the user's function. In an async function, an awaitable result is awaited."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}


class ParallelScripts(Struct, frozen=True):
    """Scripts to run concurrently, at most `limit` at once.

    The answer is the list of their results, in the same order, when all have ended.
    """

    scripts: "Sequence[Script[Any]]"
    limit: int | None = None


Operation = ExecutionRequest | FunctionCall | ParallelScripts
Script = Generator[Operation, Any, T]


class PendingOperation:
    """An operation of a durable function.

    Async functions await it; in sync functions, `ctx.sync` or `gather` runs it.
    """

    def __init__(self, port: ExecutionPort, script: "Script[Any]", not_run: dict[int, str], description: str) -> None:
        self._port, self._script, self._not_run = port, script, not_run
        not_run[id(self)] = description

    @property
    def script(self) -> "Script[Any]":
        """Return the script that runs the operation; the operation then no longer counts as not run."""
        self._not_run.pop(id(self), None)
        return self._script

    def __await__(self) -> Generator[Any, None, Any]:
        return run_async(self._port, self.script).__await__()


async def run_async(port: ExecutionPort, script: "Script[T]") -> T:
    """Run a script on the event loop."""
    answer, error = None, None
    while True:
        try:
            op = script.send(answer) if error is None else script.throw(error)
        except StopIteration as end:
            result: T = end.value
            return result
        answer, error = None, None
        try:
            answer = await _do_async(port, op)
        except BaseException as raised:
            error = raised


async def _do_async(port: ExecutionPort, op: Operation) -> Any:
    if isinstance(op, ParallelScripts):
        return await _all_async(port, op)
    if isinstance(op, FunctionCall):
        value = op.function(*op.args, **op.kwargs)
        return await value if inspect.isawaitable(value) else value
    return await asyncio.wrap_future(port.ask(op))


async def _all_async(port: ExecutionPort, op: ParallelScripts) -> list[Any]:
    room = asyncio.Semaphore(op.limit or max(1, len(op.scripts)))

    async def one(script: "Script[Any]") -> Any:
        async with room:
            return await run_async(port, script)

    tasks = [asyncio.ensure_future(one(script)) for script in op.scripts]
    try:
        await asyncio.wait(tasks) if tasks else None
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise
    return _results([(task.exception(), task) for task in tasks if not task.cancelled()], lambda task: task.result())


def run_sync(port: ExecutionPort, script: "Script[T]") -> T:
    """Run a script in this thread."""
    if asyncio._get_running_loop() is not None:
        script.close()
        raise RuntimeError("ctx.sync would block the event loop; await the method of ctx itself instead")
    answer, error = None, None
    while True:
        try:
            op = script.send(answer) if error is None else script.throw(error)
        except StopIteration as end:
            result: T = end.value
            return result
        answer, error = None, None
        try:
            answer = _do_sync(port, op)
        except BaseException as raised:
            error = raised


def _do_sync(port: ExecutionPort, op: Operation) -> Any:
    if isinstance(op, ParallelScripts):
        return _all_sync(port, op)
    if isinstance(op, FunctionCall):
        value = op.function(*op.args, **op.kwargs)
        if inspect.iscoroutine(value):
            value.close()
            message = f"{op.function} is async, but the job's function is sync"
            raise TypeError(f"{message}; make the job's function async, or the step's function sync")
        return value
    return port.ask(op).result()


def _all_sync(port: ExecutionPort, op: ParallelScripts) -> list[Any]:
    if not op.scripts:
        return []
    pool = ThreadPoolExecutor(min(op.limit or MOST_THREADS, len(op.scripts), MOST_THREADS), "horae-step")
    try:
        done = [pool.submit(contextvars.copy_context().run, run_sync, port, script) for script in op.scripts]
        return _results([(future.exception(), future) for future in done], lambda future: future.result())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _results(ended: Sequence[tuple[BaseException | None, Any]], result: Callable[[Any], Any]) -> list[Any]:
    """Raise the first failure. If there is none but scripts are suspended, raise one `Suspended` with all their waits.

    Otherwise return all results.
    """
    errors = [error for error, _ in ended if error is not None]
    waits = [error for error in errors if isinstance(error, Suspended)]
    for error in errors:
        if not isinstance(error, Suspended):
            raise error
    if waits:
        raise combine_waits(waits)
    return [result(one) for _, one in ended]
