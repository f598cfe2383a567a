"""The client for code without an event loop: one background thread runs the asynchronous client.

No method is written twice: `SyncClient` looks up the asynchronous method of the same name and waits for it.
"""

import asyncio
import inspect
import os
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import suppress
from functools import wraps
from typing import Any, Generic, TypeVar

from horae.client.loops import BLOCKED, CLOSING, EXIT_HOOKS, FORK_LOCK, INHERITED, running_loop
from horae.client.transport.calls import Resource

T = TypeVar("T")
CLOSE_TIMEOUT = 5.0  # seconds that closing connections may take when Python exits


class Portal:
    """An event loop in a daemon thread, with calls into it. One portal serves the whole process."""

    def __init__(self) -> None:
        if sys.is_finalizing():
            raise RuntimeError(
                "Python is ending, so no call can be made any more. Make it before, or in a function that is registered"
                " with atexit."
            )
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._stopping = False
        self._thread = threading.Thread(target=self._loop.run_forever, name="horae-client", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the portal's loop and wait for it here.

        It also works in a thread with a running loop, which is blocked meanwhile.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("The sync client cannot be used from its own event loop; await the async one.")
        if os.getpid() != self._pid:
            work.close()
            raise RuntimeError("This iterator belongs to the process that this one was forked from. Begin a new one.")
        here = running_loop()
        token = BLOCKED.set(BLOCKED.get() if here is None else (*BLOCKED.get(), here))
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        finally:
            BLOCKED.reset(token)
        try:
            return future.result()
        except BaseException:
            if self._stopping and threading.current_thread().daemon:
                threading.Event().wait()  # Python exits and abandons this thread: a traceback would help no user
            future.cancel()  # after an interrupt of this thread, the loop must not continue the work
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over an asynchronous iterator of the portal's loop, one item at a time."""
        pulled = _PulledIterator(items)
        try:
            while True:
                try:
                    yield self.wait(pulled.next())
                except StopAsyncIteration:
                    return
        finally:
            self._close(pulled)

    def stop(self) -> None:
        """Close the loop's connections and end the thread. Python is exiting, so nothing may block this."""
        self._stopping = True
        self._loop.set_exception_handler(lambda *_: None)  # hides errors of iterators that other threads wait for
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._close_all(), self._loop).result(CLOSE_TIMEOUT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_TIMEOUT)
        if not self._thread.is_alive():
            self._loop.close()

    async def _close_all(self) -> None:
        await asyncio.gather(*(closing for closing in CLOSING if closing.get_loop() is self._loop))
        await self._loop.shutdown_asyncgens()

    def _close(self, pulled: "_PulledIterator[Any]") -> None:
        """Close an iterator; the garbage collector may call this in any thread, and in a forked child."""
        if os.getpid() != self._pid or self._loop.is_closed():
            return
        if threading.current_thread() is self._thread:
            asyncio.run_coroutine_threadsafe(pulled.close(), self._loop)
        else:
            self.wait(pulled.close())


class _PulledIterator(Generic[T]):
    """An asynchronous iterator on the portal's loop. It is closed only after the call that gets its next item ended."""

    def __init__(self, items: AsyncIterator[T]) -> None:
        self._items, self._turn = items, asyncio.Lock()

    async def next(self) -> T:
        async with self._turn:
            return await anext(self._items)

    async def close(self) -> None:
        async with self._turn:
            if close := getattr(self._items, "aclose", None):
                await close()


_portal: Portal | None = None


def portal() -> Portal:
    """Return the portal of this process; the first call starts it."""
    global _portal
    if _portal is None:
        with FORK_LOCK:
            if _portal is None:
                _portal = Portal()
    return _portal


def _start_anew() -> None:
    """Forget the parent's portal, because its thread does not run in a forked child."""
    global _portal
    INHERITED.append(_portal)
    _portal = None


def _stop() -> None:
    global _portal
    ended, _portal = _portal, None
    if ended is not None:
        ended.stop()


os.register_at_fork(after_in_child=_start_anew)
EXIT_HOOKS.append(_stop)


class SyncProxy:
    """A proxy of an asynchronous object. Its methods block until the result is there, and return plain iterators."""

    def __init__(self, behind: Any) -> None:
        self._behind = behind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._behind, name)
        if not (inspect.ismethod(found) or isinstance(found, Resource)):
            return found
        face = _blocking(found) if inspect.ismethod(found) else SyncProxy(found)
        self.__dict__[name] = face
        return face

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._behind) if not name.startswith("_")]

    def __repr__(self) -> str:
        return f"<blocking {self._behind!r}>"


def _blocking(found: Any) -> Any:
    @wraps(found)
    def blocking(*args: Any, **kwargs: Any) -> Any:
        if inspect.isasyncgenfunction(found):
            return portal().iterate(found(*args, **kwargs))
        return portal().wait(found(*args, **kwargs))

    return blocking


class SyncClient(SyncProxy):
    """`Client` without await: `SyncClient(url, key)` or `Client(url, key).sync`. Threads and forks may share it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from horae.client.client import Client

        given = args[0] if args and isinstance(args[0], Client) else None
        super().__init__(given or Client(*args, **kwargs))

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        portal().wait(self._behind.close())

    def __enter__(self) -> "SyncClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
