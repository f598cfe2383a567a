"""Lookup: concurrent reads share a statement, and no answer is older than its request."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from horae.engine.base.lookup import IN_FLIGHT, MOST, Lookup
from horae.errors import StoreUnavailable


class Source:
    """A source of reads that lets them through one at a time."""

    def __init__(self) -> None:
        self.values: dict[int, str] = {}
        self.reads: list[list[int]] = []
        self.let: asyncio.Event = asyncio.Event()
        self.let.set()
        self.error: Exception | None = None

    async def read(self, keys: Sequence[int]) -> Mapping[int, str]:
        self.reads.append(list(keys))
        found = dict(self.values)
        await self.let.wait()
        if self.error is not None:
            raise self.error
        return found


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_concurrent_requests_are_read_once_by_one_statement():
    source = Source()
    source.values = {1: "a", 2: "b"}
    lookup = Lookup(source.read)

    found = await asyncio.gather(*(lookup.get(key) for key in (1, 2, 1, 3)))

    assert found == ["a", "b", "a", None]
    assert source.reads == [[1, 2, 3]]


async def test_a_running_read_does_not_answer_later_requests():
    source = Source()
    source.values, lookup = {1: "old"}, Lookup(source.read)
    source.let.clear()
    first = asyncio.create_task(lookup.get(1))
    await turns()

    source.values = {1: "new"}
    second = asyncio.create_task(lookup.get(1))
    await turns()
    source.let.set()

    assert (await first, await second) == ("old", "new")


async def test_a_statement_reads_a_limited_number_of_keys():
    source = Source()
    source.values = {key: str(key) for key in range(3 * MOST)}
    lookup = Lookup(source.read)

    found = await asyncio.gather(*map(lookup.get, source.values))

    assert found == list(source.values.values())
    assert [len(keys) for keys in source.reads] == [MOST] * 3


async def test_the_number_of_concurrent_reads_is_limited():
    source, asked = Source(), []
    lookup = Lookup(source.read)
    source.let.clear()
    for key in range(IN_FLIGHT + 2):
        asked.append(asyncio.create_task(lookup.get(key)))
        await turns()

    assert len(source.reads) == IN_FLIGHT
    source.let.set()
    await asyncio.gather(*asked)
    assert source.reads[IN_FLIGHT:] == [[IN_FLIGHT, IN_FLIGHT + 1]]


async def test_a_failed_read_fails_all_its_requests_and_the_next_succeeds():
    source = Source()
    source.values, source.error = {1: "a"}, StoreUnavailable("gone")
    lookup = Lookup(source.read)

    told = await asyncio.gather(lookup.get(1), lookup.get(2), return_exceptions=True)
    source.error = None

    assert [type(error) for error in told] == [StoreUnavailable] * 2
    assert len(source.reads) == 1
    assert await lookup.get(1) == "a"


async def test_a_cancelled_request_does_not_affect_others():
    source = Source()
    source.values, lookup = {1: "a"}, Lookup(source.read)
    source.let.clear()
    leaving, staying = (asyncio.create_task(lookup.get(1)) for _ in range(2))
    await turns()

    leaving.cancel()
    await turns()
    source.let.set()

    assert await staying == "a"
    with pytest.raises(asyncio.CancelledError):
        await leaving
