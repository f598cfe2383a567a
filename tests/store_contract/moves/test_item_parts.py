"""Lists read the params, results and errors that they show, and no more than one page of them."""

import tracemalloc
from collections.abc import Sequence
from uuid import UUID

import pytest
from msgspec import Raw, structs

from horae.env import SECOND
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions import submission
from horae.model.executions.execution import Extra
from horae.model.fleet.protocol import Failure, Outcome
from horae.store.executions.reads import execution_lists as lists
from horae.store.executions.reads import item_parts
from horae.store.executions.reads.execution_lists import END, ExecutionFilter, FoundExecution, Place
from tests.store_contract.world import NAMESPACE, TestJob, World

MIB = 1 << 20
LARGE = 60  # executions of one MiB each
ALL = ExecutionFilter()


async def submit(world: World, job: TestJob, params: Sequence[bytes]) -> list[UUID]:
    """Submit executions with these params in one request, after those before."""
    world.clock.advance(SECOND)
    wanted = world.wanted(job, len(params))
    told = [structs.replace(one, item=item) for one, item in zip(wanted, params, strict=True)]
    (receipts,) = (await world.store.submit([submission.Submission(executions=told)])).answers
    return [receipt.execution_id for receipt in receipts]


async def read(
    world: World, before: Place = END, limit: int = 1000, whole: bool = False
) -> tuple[list[FoundExecution], Place | None]:
    return await world.store.read(lambda: lists.read(lists.page(NAMESPACE, ALL, before, limit), NAMESPACE, whole=whole))


def sized(size: int) -> bytes:
    """Return a JSON object of a number of bytes."""
    return b'{"x":"' + b"x" * (size - 8) + b'"}'


async def test_a_list_of_large_params_reads_none_of_them(world: World):
    job = await world.job()
    for _ in range(LARGE):
        await submit(world, job, [sized(MIB - 100)])
    await read(world)  # what is made once is made

    tracemalloc.start()
    found, following = await read(world)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (len(found), following) == (LARGE, None)
    assert {bytes(one.execution.params) for one in found} == {b""}
    assert peak < 4 * MIB


async def test_a_list_shows_the_small_params_beside_large_ones(world: World):
    job = await world.job()
    params = [b'{"a":1}', sized(5000), b'{"b":2}', b'{"c":3}', sized(4096), sized(4097), b"{}"]
    ids = await submit(world, job, params)

    found, _ = await read(world)

    shown = {one.execution.id: bytes(one.execution.params) for one in found}
    assert shown == {id: b"" if len(item) > 4096 else item for id, item in zip(ids, params, strict=True)}


async def test_results_and_errors_are_shown_with_their_items(world: World):
    parcel = await world.parcel(await world.job(), 5)
    w = await world.worker()
    (slice,) = await w.claim(5)

    def ended(lo: int, hi: int, **more) -> Outcome:
        return Outcome(parcel=parcel, lo=lo, hi=hi, attempt=slice.attempt, **more)

    results = [Raw(b"1"), Raw(b'"%s"' % (b"y" * 5000)), Raw(b"[3]")]
    await w.report(ended(0, 3, outcome="success", results=results))
    await w.report(ended(3, 4, outcome="failed", error=Failure(type="Boom", message="m", permanent=True)))
    found = {one.execution.id: one.execution for one in (await read(world))[0]}

    of = [found[execution_id(parcel, item)] for item in range(5)]
    assert [one.result for one in of] == [Raw(b"1"), Raw(b""), Raw(b"[3]"), None, None]
    assert [one.error.message if one.error else None for one in of] == [None, None, None, "m", None]
    assert [bytes(one.params) for one in of] == [b'{"i":%d}' % item for item in range(5)]


@pytest.mark.parametrize("whole", [True, False])
async def test_a_page_ends_where_it_has_enough_bytes_and_goes_on(world: World, monkeypatch, whole: bool):
    monkeypatch.setattr(item_parts, "MOST_BYTES", 2500)
    job = await world.job()
    ids = [
        *await submit(world, job, [sized(1000), sized(1000), b"{}", sized(1000)]),
        *await submit(world, job, [sized(4000)]),  # more than a page, and still one
        *await submit(world, job, [b"{}"] * 3),
    ]
    pages, place = [], END
    while place is not None:
        found, place = await read(world, place, whole=whole)
        pages.append([one.execution.id for one in found])

    assert [id for page in pages for id in page] == sorted(ids, reverse=True)
    assert [len(page) for page in pages] == [3, 1, 3, 1]


async def test_an_error_counts_for_each_item_that_shows_it(world: World, monkeypatch):
    monkeypatch.setattr(item_parts, "MOST_BYTES", 10_000)
    parcel = await world.parcel(await world.job(), 8)
    w = await world.worker()
    (slice,) = await w.claim(8)
    error = Failure(type="Boom", message="m" * 3000, permanent=True)
    await w.report(Outcome(parcel=parcel, lo=0, hi=8, attempt=slice.attempt, outcome="failed", error=error))

    found, following = await read(world)

    assert (len(found), following) == (3, (parcel, 5))


async def submit_tagged(world: World, job: TestJob, count: int, size: int = 2000) -> list[UUID]:
    """Submit one parcel of executions, each with its own tags of a number of bytes."""
    world.clock.advance(SECOND)
    told = [
        structs.replace(one, extra=Extra(tags={"number": str(number), "long": f"{number:08d}" + "x" * size}))
        for number, one in enumerate(world.wanted(job, count))
    ]
    (receipts,) = (await world.store.submit([submission.Submission(executions=told)])).answers
    return [receipt.execution_id for receipt in receipts]


async def test_the_tags_of_a_parcel_are_read_once_for_all_its_slices(world: World):
    ids = await submit_tagged(world, await world.job(), 120, 8000)
    for id in ids[::2]:
        await world.store.cancel(parcel_of(id), index_of(id), "")
    await read(world)  # what is made once is made

    tracemalloc.start()
    found, _ = await read(world)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert [one.execution.extra.tags["number"] for one in found] == [str(number) for number in range(119, -1, -1)]
    assert peak < 12 * MIB  # a parcel's tags take one


async def test_a_page_of_long_tags_ends_where_it_has_enough_bytes_and_goes_on(world: World, monkeypatch):
    monkeypatch.setattr(item_parts, "MOST_BYTES", 20_000)
    job = await world.job()
    ids = [id for _ in range(3) for id in await submit_tagged(world, job, 5)]
    pages, place = [], END
    while place is not None:
        found, place = await read(world, place)
        pages.append([one.execution.id for one in found])

    assert [id for page in pages for id in page] == sorted(ids, reverse=True)
    assert [len(page) for page in pages] == [5, 5, 5]


@pytest.mark.parametrize("limit", [1, 2, 1000])
async def test_a_search_for_a_tag_reads_a_bounded_number_of_bytes(world: World, monkeypatch, limit: int):
    monkeypatch.setattr(lists, "MOST_TAGGED", 25_000)
    job = await world.job()
    ids = [await submit_tagged(world, job, 5) for _ in range(6)]
    wanted = ExecutionFilter(tag=("number", "3"))
    found, place, pages = [], END, 0
    while place is not None:
        some, place = await world.store.read(lambda: lists.page(NAMESPACE, wanted, place, limit))  # noqa: B023
        found += [execution_id(slice.parcel, item) for slice, item in some]
        pages += 1

    assert found == [of[3] for of in reversed(ids)]
    assert pages >= 3
