"""What a process uses, its child processes included."""

from collections.abc import Iterator
from contextlib import suppress

import psutil


def _family(pid: int) -> Iterator[psutil.Process]:
    process = psutil.Process(pid)
    yield process
    yield from process.children(recursive=True)


def cpu_seconds(pid: int) -> float:
    """Processor time used so far, by children that are gone too."""
    total = 0.0
    for process in _family(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + (times.children_user + times.children_system)
    return total


def rss_bytes(pid: int) -> int:
    """Memory that is resident now."""
    total = 0
    for process in _family(pid):
        with suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total


def own_rss_bytes(pid: int) -> int:
    """Memory of one process that is resident now, what it has started not included."""
    return int(psutil.Process(pid).memory_info().rss)
