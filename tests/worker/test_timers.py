"""Timers on a controlled clock."""

import asyncio

from horae.env import SECOND, VirtualClock
from horae.worker.timers import Timers


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_calls_are_made_in_the_order_of_their_times():
    clock, made = VirtualClock(), []
    timers = Timers(clock)
    timers.after(2, made.append, "b")
    timers.after(1, made.append, "a")
    timers.after(3, made.append, "c")
    await turn()

    clock.advance(2 * SECOND)
    await turn()
    assert made == ["a", "b"]

    clock.advance(2 * SECOND)
    await turn()
    assert made == ["a", "b", "c"]


async def test_a_cancelled_call_is_not_made():
    clock, made = VirtualClock(), []
    timers = Timers(clock)
    timers.after(1, made.append, "a").cancel()
    timers.after(1, made.append, "b")
    clock.advance(SECOND)
    await turn()

    assert made == ["b"]


async def test_cancelled_timers_do_not_pile_up():
    timers = Timers(VirtualClock())
    for _ in range(10_000):
        timers.after(3600, print).cancel()

    assert len(timers) < 300
    timers.close()


async def test_a_call_may_set_the_next_one():
    clock, made = VirtualClock(), []
    timers = Timers(clock)

    def again(n: int) -> None:
        made.append(n)
        if n < 3:
            timers.after(1, again, n + 1)

    timers.after(1, again, 1)
    for _ in range(3):
        await turn()
        clock.advance(SECOND)
    await turn()

    assert made == [1, 2, 3]
