"""Threads for waiting on remote machines, separate from the threads for local work.

If hosts never answer, requests to them can block only these threads. So other threads still read files, write logs and
check passwords.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")
RESOLVER_THREADS = ThreadPoolExecutor(16, "horae-names")  # for name lookups
# For libraries that block: each concurrent delivery has a thread, so that no delivery waits for another receiver.
MAIL_THREADS = ThreadPoolExecutor(64, "horae-talks")  # deliveries to mail servers, which are aborted after a timeout
APPRISE_THREADS = ThreadPoolExecutor(64, "horae-chats")  # deliveries by apprise, which cannot be aborted


async def run_in(threads: ThreadPoolExecutor, work: Callable[[], Found]) -> Found:
    """Run blocking work on one of these threads, and return its result."""
    return await asyncio.get_running_loop().run_in_executor(threads, work)
