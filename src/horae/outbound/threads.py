"""Threads for waiting on remote machines, apart from threads for local work.

Requests to hosts that never answer can fill these threads and no others, so files, logs and passwords are still read.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")
RESOLVER_THREADS = ThreadPoolExecutor(16, "horae-names")  # for name lookups
# For blocking libraries: one thread per concurrent delivery, so that no delivery waits for another receiver.
MAIL_THREADS = ThreadPoolExecutor(64, "horae-talks")  # mail servers; a delivery is aborted when its time is over
APPRISE_THREADS = ThreadPoolExecutor(64, "horae-chats")  # apprise, which cannot be aborted


async def run_in(threads: ThreadPoolExecutor, work: Callable[[], Found]) -> Found:
    """Run blocking work on one of these threads."""
    return await asyncio.get_running_loop().run_in_executor(threads, work)
