"""The client for code without an event loop: one background thread runs the asynchronous client.

There are no twins: `SyncClient` looks up the method of the same name and waits for it, so both always agree.
"""

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from functools import wraps
from typing import Any, TypeVar

from horae.client.loops import BLOCKED, NO_FORK, running_loop

T = TypeVar("T")


class Portal:
    """An event loop in a daemon thread, and the way into it. One serves the whole process."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="horae-client", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it here. It also works where a loop runs, which stands still meanwhile."""
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
            future.cancel()  # an interrupt here must not leave the work running there
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Pull an asynchronous iterator from here, one item at a time."""
        try:
            while True:
                try:
                    yield self.wait(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            self._close(items)

    def stop(self) -> None:
        """Close the connections that the loop holds, and end the thread."""
        self.wait(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _close(self, items: AsyncIterator[Any]) -> None:
        """Close an iterator; the garbage collector may ask for it in any thread, and in a forked child."""
        close = getattr(items, "aclose", None)
        if close is None or os.getpid() != self._pid or self._loop.is_closed():
            return
        if threading.current_thread() is self._thread:
            asyncio.run_coroutine_threadsafe(close(), self._loop)
        else:
            self.wait(close())


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


_portal: Portal | None = None
_inherited: list[Portal | None] = []  # kept for ever: their sockets and selectors belong to the parent process


def portal() -> Portal:
    """Return the portal of this process; the first call starts it."""
    global _portal
    if _portal is None:
        with NO_FORK:
            if _portal is None:
                _portal = Portal()
    return _portal


def _start_anew() -> None:
    """Forget the parent's thread, which does not run in a forked child."""
    global _portal
    _inherited.append(_portal)
    _portal = None


def _stop() -> None:
    global _portal
    ended, _portal = _portal, None
    if ended is not None:
        ended.stop()


os.register_at_fork(after_in_child=_start_anew)
atexit.register(_stop)


class SyncFace:
    """An object whose coroutine methods block and whose asynchronous iterators are plain ones."""

    def __init__(self, behind: Any) -> None:
        self._behind = behind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._behind, name)
        face = _blocking(found) if inspect.ismethod(found) else SyncFace(found)
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


class SyncClient(SyncFace):
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
