"""Long-running commands: the event loop, the two signals, and an orderly end."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from horae.cli.terminal import echo
from horae.env import Clock

T = TypeVar("T")

STOPPING = (signal.SIGTERM, signal.SIGINT)
SAME = 0.5  # seconds: timeout(1) and process managers signal the process and its group, which is one wish told twice


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def calm_collector() -> None:
    """Call when everything is loaded: the garbage collector need not look at that again, nor so often at the rest.

    Python's default looks after every 700 objects made; that was a third of the time of a small request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


class StopSignals:
    """The first signal drains, the second aborts."""

    def __init__(self, clock: Clock) -> None:
        self.drain = asyncio.Event()
        self.abort = asyncio.Event()
        self._clock = clock
        self._first = 0.0

    def __call__(self) -> None:
        now = self._clock.monotonic()
        if not self.drain.is_set():
            self._first = now
            echo("Draining; once more aborts.", err=True)
            self.drain.set()
        elif now - self._first >= SAME:
            echo("Aborting.", err=True)
            self.abort.set()


@contextmanager
def signals(clock: Clock) -> Iterator[StopSignals]:
    """Take SIGTERM and SIGINT for as long as this lasts."""
    loop, taken = asyncio.get_running_loop(), StopSignals(clock)
    for number in STOPPING:
        loop.add_signal_handler(number, taken)
    try:
        yield taken
    finally:
        for number in STOPPING:
            loop.remove_signal_handler(number)


async def unless_aborted(work: Awaitable[T], taken: StopSignals) -> T | None:
    """Await something, or leave it when told to abort."""
    task = asyncio.ensure_future(work)
    aborting = asyncio.ensure_future(taken.abort.wait())
    try:
        await asyncio.wait({task, aborting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return None
    finally:
        aborting.cancel()


async def work_until_told(worker: Any, taken: StopSignals) -> str:
    """Run a worker; the first signal drains it, the second ends it."""
    running = asyncio.ensure_future(worker.run())
    watching = [
        asyncio.ensure_future(_on(taken.drain, worker.drain)),
        asyncio.ensure_future(_on(taken.abort, worker.abort)),
    ]
    try:
        end: str = await running
        return end
    finally:
        for watch in watching:
            watch.cancel()


async def _on(event: asyncio.Event, act: Callable[[], None]) -> None:
    await event.wait()
    act()
