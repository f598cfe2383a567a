"""Values that belong to one event loop, such as open connections, for code that runs on several loops."""

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")
Loop = asyncio.AbstractEventLoop

# Event loops whose threads are blocked until the current task has served their synchronous call.
BLOCKED: ContextVar[tuple[Loop, ...]] = ContextVar("horae_blocked", default=())

# Held while modules are loaded, threads started and SSL contexts created. A fork waits for it: otherwise the child
# could inherit a lock (of a module's import, or of OpenSSL) that another thread of the parent held, and wait for ever.
FORK_LOCK = threading.RLock()
os.register_at_fork(before=FORK_LOCK.acquire, after_in_parent=FORK_LOCK.release, after_in_child=FORK_LOCK.release)

# Functions that are called when Python exits. Functions that the program registered with atexit after importing horae
# are called before them, because they may still submit.
EXIT_HOOKS: list[Callable[[], None]] = []
CLOSING: set["asyncio.Task[None]"] = set()  # tasks that close values; a loop has only weak references to its tasks
INHERITED: list[object] = []  # kept for ever: sockets and selectors of the parent process of a fork


class _Held(Struct, Generic[T], frozen=True):
    value: T
    keeper: AsyncGenerator[T, None]


class PerLoop(Generic[T]):
    """One value per process and running event loop, created on first use and closed with the loop.

    A forked child creates its own values and never touches the parent's. `asyncio.run` and similar functions close the
    values: a loop closes its asynchronous generators before it ends, and a generator holds each value. An unclosed
    value that the garbage collector finds is closed on its own loop.
    """

    def __init__(self, close: Callable[[T], Awaitable[None]]) -> None:
        self._close = close
        self._held: dict[tuple[int, Loop], _Held[T]] = {}
        # The finalizer refers to the values, so that none becomes garbage before this object.
        weakref.finalize(self, _let_go, self._held).atexit = False

    async def here(self, make: Callable[[], T]) -> T:
        """Return the value of the running loop; create it with `make` if there is none yet."""
        loop = needed_loop()
        key = os.getpid(), loop
        held = self._held.get(key)
        if held is None:
            self._forget_closed(key[0])
            keeper = _keep(self._held, key, make(), self._close)
            held = self._held[key] = _Held(await anext(keeper), keeper)
        return held.value

    async def close(self) -> None:
        """Close the running loop's value, and let every other running loop close its own."""
        pid, here = os.getpid(), needed_loop()
        for (owner, loop), held in list(self._held.items()):
            if owner == pid and loop is here:
                await held.keeper.aclose()
            elif owner == pid and loop.is_running():
                asyncio.run_coroutine_threadsafe(held.keeper.aclose(), loop)

    def _forget_closed(self, pid: int) -> None:
        """Drop the values of loops that ended without closing their generators."""
        for key in [key for key in list(self._held) if key[0] == pid and key[1].is_closed()]:
            self._held.pop(key, None)


async def _keep(
    held: dict[tuple[int, Loop], Any], key: tuple[int, Loop], value: T, close: Callable[[T], Awaitable[None]]
) -> AsyncGenerator[T, None]:
    try:
        yield value
    finally:
        held.pop(key, None)
        if os.getpid() == key[0]:  # in a forked child, the sockets are still used by the parent
            await close(value)


def _let_go(held: dict[tuple[int, Loop], _Held[Any]]) -> None:
    """Close values that are no longer reachable; the garbage collector calls this in any thread."""
    for (pid, loop), one in list(held.items()):
        if pid != os.getpid():
            INHERITED.append(one)
        else:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_close_on, loop, one.keeper)


def _close_on(loop: Loop, keeper: AsyncGenerator[Any, None]) -> None:
    closing = loop.create_task(_closed(keeper))
    CLOSING.add(closing)
    closing.add_done_callback(CLOSING.discard)


async def _closed(keeper: AsyncGenerator[Any, None]) -> None:
    await keeper.aclose()


@atexit.register
def _end() -> None:
    while EXIT_HOOKS:
        EXIT_HOOKS.pop()()


def needed_loop() -> Loop:
    """Return the running event loop of this thread. Without one, raise an error that describes the alternative."""
    loop = running_loop()
    if loop is None:
        raise RuntimeError(
            "No event loop of asyncio runs here. Horae's asynchronous client needs one: with trio or curio, make"
            " blocking calls in a thread, as in `await trio.to_thread.run_sync(lambda: job.sync.submit(...))`."
        )
    return loop


def running_loop() -> Loop | None:
    """Return the running event loop of this thread, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def on_home_loop(home: Loop | None, work: Any) -> Any:
    """Await a coroutine on the loop to which its objects belong, from any running loop."""
    if home is None or home.is_closed() or home is asyncio.get_running_loop():
        return await work
    if home in BLOCKED.get():
        work.close()
        raise RuntimeError(
            "This blocking call stops the event loop that the embedded server runs on, so no answer can come."
            " Await the asynchronous method instead, or make the call in a thread: await asyncio.to_thread(...)."
        )
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home))
