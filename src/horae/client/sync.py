"""The client for code without an event loop: one background thread runs the asynchronous client.

There are no twins: `SyncClient` looks up the method of the same name and waits for it, so both always agree.
"""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """An event loop in a daemon thread, and the way into it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="horae-client", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it here."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("The sync client cannot be used from its own event loop; await the async one.")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
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
            close = getattr(items, "aclose", None)
            if close is not None:
                self.wait(close())

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


class SyncFace:
    """An object whose coroutine methods block and whose asynchronous iterators are plain ones."""

    def __init__(self, behind: Any, portal: Portal) -> None:
        self._behind = behind
        self._portal = portal

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._behind, name)
        face = self._method(found) if inspect.ismethod(found) else SyncFace(found, self._portal)
        self.__dict__[name] = face
        return face

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._behind) if not name.startswith("_")]

    def _method(self, found: Any) -> Any:
        portal = self._portal

        @wraps(found)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            if inspect.isasyncgenfunction(found):
                return portal.iterate(found(*args, **kwargs))
            return portal.wait(found(*args, **kwargs))

        return blocking


class SyncClient(SyncFace):
    """`Client` without await: `SyncClient(url, key)` or `Client(url, key).sync`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from horae.client.client import Client

        given = args[0] if args and isinstance(args[0], Client) else None
        super().__init__(given or Client(*args, **kwargs), Portal())

    def close(self) -> None:
        self._portal.wait(self._behind.close())
        self._portal.stop()

    def __enter__(self) -> "SyncClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
