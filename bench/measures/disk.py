"""`python -m bench disk`: the disk space of a finished execution."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.kit.command import Steps, bench, concurrency_option, count_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stores import Source
    from horae.env import Env

PARCELS = {"parcels of one": 1, "parcels of 500": 500}


@bench("python -m bench disk", "python -m bench disk --singles 20000 --store sqlite://")
@count_option("--executions", 100_000, "Executions in parcels of 500.")
@count_option("--singles", 5_000, "Executions in parcels of one.")
@store_option
@concurrency_option
async def disk(executions: int, singles: int, store: str | None, concurrency: int) -> "Sequence[Result]":
    """Bytes on disk per finished execution, indexes included.

    Executions go through a server and a worker: single ones are submitted by one connection one after another, so each
    has its own parcel; the others are submitted five hundred per request. Then the server is stopped and the size of
    the store is compared with its size before: of the SQLite file after a checkpoint, of the PostgreSQL database after
    a vacuum like autovacuum's. "Payload" is the params and result as JSON, "overhead" the rest.
    """
    from bench.kit.results import machine, measured
    from bench.kit.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps(len(PARCELS) * len(found)) as steps:
        for source in found:
            for case, per_parcel in PARCELS.items():
                steps.begin(f"{source.name}: {case}")
                count = singles if per_parcel == 1 else max(1, executions // per_parcel) * per_parcel
                given = singles if per_parcel == 1 else per_parcel  # different params: 0, 1, 2, ...
                whole = await _measure(env, source, count, per_parcel, concurrency)
                payload = sum(2 * len(str(i)) + len('{"i":}') for i in range(given)) / given
                settings = {"store": await source.version(), "executions": count, **machine()}
                results += [
                    measured("disk", f"{source.name} {case}", metric, "bytes/execution", [value], settings)
                    for metric, value in (("overhead", whole - payload), ("payload", payload))
                ]
                steps.done()
    return results


async def _measure(env: "Env", source: "Source", count: int, per_parcel: int, concurrency: int) -> float:
    """Return the bytes that an execution adds to a store with all its tables and jobs."""
    from bench.kit.fill import filling
    from bench.kit.load import drained, submit_lots, submit_singly
    from bench.kit.stage import staged

    async with source.fresh() as url:
        async with filling(env, url):
            pass
        before = await source.size(url)
        async with staged(env, url) as stage:
            if per_parcel == 1:
                await submit_singly(stage, count, clients=1)
            else:
                await submit_lots(stage, count, per_parcel, clients=1)
            await stage.start_worker(concurrency)
            await drained(stage)
        return (await source.size(url) - before) / count
