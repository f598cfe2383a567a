"""What waits for the store no longer than whoever asks does."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from horae.errors import StoreUnavailable

T = TypeVar("T")


async def promptly(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """What this work brings, if it brings it soon; raises StoreUnavailable otherwise, and nobody waits for its end."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(heard)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise StoreUnavailable("The store takes too long to answer.")
        return task.result()
    finally:
        task.cancel()


def heard(task: asyncio.Task[Any]) -> None:
    """What comes too late is of no interest, and not worth a line in the log."""
    if not task.cancelled():
        task.exception()
