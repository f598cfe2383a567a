"""A time limit for requests to the store."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from horae.errors import StoreUnavailable

T = TypeVar("T")


async def within_seconds(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return the result of this work, or raise StoreUnavailable if it takes too long. Late work is cancelled."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(ignore_late_result)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise StoreUnavailable("The store takes too long to answer.")
        return task.result()
    finally:
        task.cancel()


def ignore_late_result(task: asyncio.Task[Any]) -> None:
    """Ignore the result or exception of late work, so that no warning is logged."""
    if not task.cancelled():
        task.exception()
