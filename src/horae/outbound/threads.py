"""Threads that wait for machines of others, apart from those in which this one does its own work.

Whoever names hosts that never answer fills these and no more: files, logs and passwords are looked at elsewhere.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")
NAMES = ThreadPoolExecutor(16, "horae-names")  # that are looked up
TALKS = ThreadPoolExecutor(32, "horae-talks")  # by libraries that know no loop


async def within(threads: ThreadPoolExecutor, work: Callable[[], Found]) -> Found:
    """Have one of these threads do it."""
    return await asyncio.get_running_loop().run_in_executor(threads, work)
