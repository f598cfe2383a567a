"""The pool of connections to PostgreSQL: never more than its size, first come, first served."""

import asyncio

import pytest

pytest.importorskip("asyncpg")

from horae.errors import StoreUnavailable
from horae.store.postgres.pool import Pool


class Line:
    """A connection that stays open until it is cut."""

    cut = False

    def is_closed(self):
        return self.cut

    def terminate(self):
        self.cut = True


async def test_a_newcomer_does_not_take_a_connection_promised_to_a_waiter():
    opened = []

    async def connect():
        opened.append(Line())
        return opened[-1]

    pool, order = Pool(connect, 1), []

    async def use(name):
        connection = await pool.take()
        order.append(name)
        pool.give_back(connection)

    first = await pool.take()
    waits = asyncio.create_task(use("waits"))
    await asyncio.sleep(0)
    pool.give_back(first)
    await use("newcomer")  # runs before the waiter wakes up
    await waits

    assert order == ["waits", "newcomer"]
    assert len(opened) == 1


async def test_the_promise_of_a_cancelled_waiter_goes_to_the_next():
    async def connect():
        return Line()

    pool = Pool(connect, 1)
    first = await pool.take()
    gave_up, stays = asyncio.create_task(pool.take()), asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    pool.give_back(first)
    gave_up.cancel()

    assert await asyncio.wait_for(stays, 30) is first


async def test_silence_fails_waiters_and_cuts_connections():
    async def connect():
        return Line()

    pool = Pool(connect, 2)
    old, idle = await pool.take(), await pool.take()
    pool.give_back(idle)
    waited = pool.uses()
    young = await pool.take()
    waits = asyncio.create_task(pool.take())
    await asyncio.sleep(0)

    pool.silence(StoreUnavailable("nobody answers"), waited)
    with pytest.raises(StoreUnavailable, match="nobody"):
        await waits
    pool.give_back(old)
    with pytest.raises(StoreUnavailable, match="nobody"):
        await pool.take()
    assert (old.cut, young.cut) == (True, False)

    pool.end_silence()
    assert not (await pool.take()).cut


async def test_newcomers_during_silence_fail_and_block_no_later_caller():
    async def connect():
        return Line()

    pool = Pool(connect, 1)
    old = await pool.take()
    pool.silence(StoreUnavailable("nobody answers"), pool.uses())
    told = [asyncio.create_task(pool.take()) for _ in range(3)]
    await asyncio.sleep(0)
    pool.give_back(old)
    ends = await asyncio.wait_for(asyncio.gather(*told, return_exceptions=True), 30)
    assert [type(end) for end in ends] == [StoreUnavailable] * 3

    pool.end_silence()
    assert not (await asyncio.wait_for(pool.take(), 30)).cut
