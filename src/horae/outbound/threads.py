"""Threads that wait for machines of others, apart from those in which this one does its own work.

Whoever names hosts that never answer fills these and no more: files, logs and passwords are looked at elsewhere.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")
RESOLVER_THREADS = ThreadPoolExecutor(16, "horae-names")  # that are looked up
# By libraries that know no loop: as many as there are tries at once, so that nobody waits for another one's receiver.
MAIL_THREADS = ThreadPoolExecutor(64, "horae-talks")  # with mail servers; each is cut when its time is over
APPRISE_THREADS = ThreadPoolExecutor(64, "horae-chats")  # by apprise, which cannot be


async def run_in(threads: ThreadPoolExecutor, work: Callable[[], Found]) -> Found:
    """Have one of these threads do it."""
    return await asyncio.get_running_loop().run_in_executor(threads, work)
