"""Many clients in one process that submit one job at a time each."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator


def by_threads(count: int, clients: int, submit: Callable[[int], object]) -> None:
    """Submit jobs from several threads."""
    numbers, errors = iter(range(count)), []

    def work() -> None:
        try:
            for number in numbers:
                submit(number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


async def by_tasks(count: int, clients: int, submit: Callable[[int], Awaitable[object]]) -> None:
    """Submit jobs from several tasks of an event loop."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await submit(number)

    await asyncio.gather(*(work() for _ in range(clients)))


def chunks(count: int, size: int = 1_000) -> Iterator[range]:
    """Yield the numbers of jobs in chunks of one request each."""
    for first in range(0, count, size):
        yield range(first, min(first + size, count))
