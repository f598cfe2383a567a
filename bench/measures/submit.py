"""`python -m bench submit`: the rate of submissions, each acknowledged after it is on disk."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.kit.command import Steps, bench, count_option, repeats_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stage import Stage
    from bench.kit.stores import Source

PER_REQUEST, IN_FLIGHT = 1_000, 4
WARM_UP = 2_000


@bench("python -m bench submit", "python -m bench submit --clients 256 --singles 50000")
@count_option("--bulk", 500_000, "Executions submitted in bulk, a thousand per request.")
@count_option("--singles", 20_000, "Executions submitted one per request.")
@count_option("--clients", 64, "Connections that submit single ones at the same time.")
@repeats_option()
@store_option
async def submit(bulk: int, singles: int, clients: int, repeats: int, store: str | None) -> "Sequence[Result]":
    """Submissions per second over HTTP, in bulk and one by one.

    No worker runs, so everything stays queued. An acknowledgement means that the executions are on disk. The load comes
    from this one process, over kept connections and without the SDK: requests are built before the measurement, and
    only the status of an answer is checked. "SDK" is the same bulk through submit_many, encoded and decoded.
    """
    from bench.kit.stage import staged
    from bench.kit.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps(3 * repeats * len(found)) as steps:
        for source in found:
            async with source.fresh() as url, staged(env, url) as stage:
                rates, share = await _measure(stage, source, (bulk, singles, clients, repeats), steps)
            results += await _results(source, rates, share, (bulk, singles, clients, repeats))
    return results


async def _measure(
    stage: "Stage", source: "Source", size: tuple[int, int, int, int], steps: Steps
) -> tuple[dict[str, list[float]], list[float]]:
    """Return submissions per second of each kind, and the share of a core that generating the singles took."""
    import time

    from bench.kit.load import submit as submit_by_sdk
    from bench.kit.load import submit_lots, submit_singly

    bulk, singles, clients, repeats = size
    per_request = min(PER_REQUEST, bulk)
    rates: dict[str, list[float]] = {"bulk": [], "single": [], "SDK": []}
    shares: list[float] = []
    await submit_by_sdk(stage, min(bulk, WARM_UP))
    for _ in range(repeats):
        steps.begin(f"{source.name}: in bulk")
        whole = bulk // per_request * per_request
        rates["bulk"].append(whole / await submit_lots(stage, whole, per_request, IN_FLIGHT))
        steps.done()
        steps.begin(f"{source.name}: one by one")
        used = time.process_time()
        took = await submit_singly(stage, singles, clients)
        shares.append((time.process_time() - used) / took * 100)
        rates["single"].append(singles / took)
        steps.done()
        steps.begin(f"{source.name}: by the SDK")
        rates["SDK"].append(bulk / await submit_by_sdk(stage, bulk))
        steps.done()
    return rates, shares


async def _results(
    source: "Source", rates: dict[str, list[float]], shares: list[float], size: tuple[int, int, int, int]
) -> "list[Result]":
    from bench.kit.results import machine, measured

    bulk, singles, clients, repeats = size
    settings = {"store": await source.version(), "repeats": repeats, **machine()}
    many = {"executions": bulk, "perRequest": PER_REQUEST, "requestsInFlight": IN_FLIGHT, **settings}
    one = {"executions": singles, "perRequest": 1, "clients": clients, **settings}
    own = {"bulk": many, "single": one, "SDK": many}
    return [
        *(
            measured("submit", f"{source.name} {case}", "submissions", "1/s", each, own[case])
            for case, each in rates.items()
        ),
        measured("submit", f"{source.name} single", "generator processor", "% of a core", shares, one),
    ]
