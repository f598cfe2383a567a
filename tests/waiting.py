"""Waiting for a condition of the real world: the one place in the tests that sleeps."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 3  # a machine busy with other things is no failure: waits are this much longer than what they say


async def eventually(check: Callable[[], T | Awaitable[T]], within: float = 10.0, every: float = 0.02) -> T:
    """Ask until the answer is true, and return it; fail with the last answer when time is up.

    An AssertionError counts as a false answer, so a check may hold several assertions.
    """
    deadline = time.monotonic() + within * PATIENCE
    while True:
        last: object
        try:
            answer = check()
            last = answer = await answer if isawaitable(answer) else answer
            if answer:
                return answer
        except AssertionError as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"Not within {within * PATIENCE} s; the last answer was {last!r}")
        await asyncio.sleep(every)


def eventually_sync(check: Callable[[], T], within: float = 10.0, every: float = 0.02) -> T:
    """The same for tests without an event loop."""
    return asyncio.run(eventually(check, within, every))
