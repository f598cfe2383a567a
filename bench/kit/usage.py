"""Resource usage of a process, including its child processes."""

from collections.abc import Iterator
from contextlib import suppress

import psutil


def _family(pid: int) -> Iterator[psutil.Process]:
    process = psutil.Process(pid)
    yield process
    yield from process.children(recursive=True)


def cpu_seconds(pid: int) -> float:
    """Return the processor time used so far, including that of ended children."""
    total = 0.0
    for process in _family(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + (times.children_user + times.children_system)
    return total


def rss_bytes(pid: int) -> int:
    """Return the resident memory."""
    total = 0
    for process in _family(pid):
        with suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total


def own_rss_bytes(pid: int) -> int:
    """Return the resident memory of one process without its children."""
    return int(psutil.Process(pid).memory_info().rss)
