"""`python -m bench policies`: effects of policies on waiting executions, and their cost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.kit.command import Steps, bench, concurrency_option, count_option, repeats_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result


@bench("python -m bench policies", "python -m bench policies --executions 200000 --repeats 5 -o jsonl")
@count_option("--seconds", 60, "The length of a trial, on its virtual clock.")
@count_option("--executions", 100_000, "Executions per run; a tenth of them if each is a parcel.")
@repeats_option()
@store_option
@concurrency_option
async def policies(
    seconds: int, executions: int, repeats: int, concurrency: int, store: str | None
) -> "Sequence[Result]":
    """Effects of policies, labels and limits by key on waiting executions, and their cost compared with plain fifo.

    The first part is trials on a virtual clock: the server's own submissions, claims and reports over a store in
    memory, and a worker with executions that only take time. Their results are reproducible. The second part is
    throughput with real processes: executions of ten tenants are submitted in bulk, a thousand of one tenant per
    request, run by a worker, and timed to the end of the last. A limit by key is compared at two sizes of parcels, 500
    and one, while it has room and while it is full. Each case runs right beside plain fifo, and its ratio is the median
    of such pairs.
    """
    from bench.kit.results import machine, measured
    from bench.kit.stores import sources
    from bench.runs.policy_runs import COMPARED, costs
    from bench.runs.policy_trials import TRIALS
    from horae.env import system_env

    results: list[Result] = []
    with (
        sources(store, system_env()) as found,
        Steps(len(TRIALS) + repeats * len(COMPARED) * len(found), long=True) as steps,
    ):
        for one in TRIALS:
            steps.begin(one.__name__)
            for figure in await one(seconds):
                settings = {"about": figure.about, "seconds": seconds, **machine()}
                results.append(measured("policies", figure.case, figure.metric, figure.unit, [figure.value], settings))
            steps.done()
        for source in found:
            results += await costs(source, executions, repeats, concurrency, steps)
    return results
