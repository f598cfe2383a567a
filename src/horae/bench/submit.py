"""`horae bench submit`: how fast a server takes submissions, each acknowledged after it is on disk."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from horae.bench.command import Steps, bench, count_option, repeats_option, store_option

if TYPE_CHECKING:
    from horae.bench.results import Result
    from horae.bench.stage import Stage
    from horae.bench.stores import Source

TIMEOUT = 60.0


@bench("horae bench submit", "horae bench submit --clients 256 --singles 20000")
@count_option("--bulk", 200_000, "Executions submitted in bulk, a thousand a request.")
@count_option("--singles", 10_000, "Executions submitted one a request.")
@count_option("--clients", 64, "Connections that submit at the same time.")
@repeats_option()
@store_option
async def submit(bulk: int, singles: int, clients: int, repeats: int, store: str | None) -> "Sequence[Result]":
    """Submissions a second over HTTP, in bulk and one by one.

    No worker runs, so everything stays queued. Bulk goes through the SDK's submit_many, a few requests in flight;
    singles come from many connections, each waiting for its acknowledgement before it sends the next. To load the
    server and not itself, the bench speaks HTTP for these without the SDK.
    """
    from horae.bench.stage import staged
    from horae.bench.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps(2 * repeats * len(found)) as steps:
        for source in found:
            async with source.fresh() as url, staged(env, url) as stage:
                rates = await _measure(stage, source, (bulk, singles, clients, repeats), steps)
            results += await _results(source, rates, (bulk, singles, clients, repeats))
    return results


async def _measure(
    stage: "Stage", source: "Source", size: tuple[int, int, int, int], steps: Steps
) -> dict[str, list[float]]:
    from horae.bench.load import submit as submit_bulk

    bulk, singles, clients, repeats = size
    rates: dict[str, list[float]] = {"bulk": [], "single": []}
    await submit_bulk(stage, min(bulk, 2_000))
    for _ in range(repeats):
        steps.begin(f"{source.name}: in bulk")
        rates["bulk"].append(bulk / await submit_bulk(stage, bulk))
        steps.done()
        steps.begin(f"{source.name}: one by one")
        rates["single"].append(singles / await _submit_singles(stage, singles, clients))
        steps.done()
    return rates


async def _submit_singles(stage: "Stage", total: int, clients: int) -> float:
    """Submit so many one by one over so many connections; the seconds it took."""
    numbers = iter(range(total))
    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(_client(stage, numbers))
    return time.perf_counter() - begun


async def _client(stage: "Stage", numbers: Iterator[int]) -> None:
    """One connection that submits as long as there are numbers left."""
    from horae.client.local import read_key
    from horae.errors import HoraeError
    from horae.worker.wire import Line

    line, key = Line(stage.url), read_key(stage.folder / "admin.key")
    try:
        for number in numbers:
            body = b'{"job":"bench-noop","params":{"i":%d}}' % number
            reply = await line.request("POST", "/api/v1/executions", body, key, TIMEOUT)
            if reply.status != 201:
                raise HoraeError(f"A submission was answered with {reply.status}: {reply.body[:200]!r}")
    finally:
        line.close()


async def _results(source: "Source", rates: dict[str, list[float]], size: tuple[int, int, int, int]) -> "list[Result]":
    from horae.bench.results import Result, machine, median
    from horae.client.bulk import IN_FLIGHT, MOST_ITEMS

    bulk, singles, clients, repeats = size
    settings = {"store": await source.version(), "repeats": repeats, **machine()}
    own = {
        "bulk": {"executions": bulk, "perRequest": MOST_ITEMS, "requestsInFlight": IN_FLIGHT},
        "single": {"executions": singles, "clients": clients},
    }
    return [
        Result(
            bench="submit", case=f"{source.name} {case}", metric="submissions", unit="1/s",
            value=round(median(each), 1), settings={**own[case], **settings, "runs": [round(rate, 1) for rate in each]},
        )
        for case, each in rates.items()
    ]  # fmt: skip
