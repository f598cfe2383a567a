"""`horae bench policies`: what policies do to those who wait, and what they cost."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from horae.bench.command import Steps, bench, concurrency_option, count_option, repeats_option, store_option

if TYPE_CHECKING:
    from horae.bench.results import Result
    from horae.bench.stage import Stage
    from horae.bench.stores import Source

TENANTS = 10
WARM_UP = 2_000
JOB, LABELLED = "bench-tenant", "bench-labelled"
PLAIN = "fifo"
POLICIES: Mapping[str, Any] = {
    PLAIN: "fifo",
    "priority": "priority",
    "deadline": "deadline",
    "shortest": "shortest",
    "fair": {"kind": "fair", "by": "${params.tenant}"},
    "fair, priority within": {"kind": "fair", "by": "${params.tenant}", "within": "priority"},
    "fifo, a label needed": "fifo",
}


@bench("horae bench policies", "horae bench policies --executions 100000 --repeats 5 -o jsonl")
@count_option("--seconds", 60, "How long a trial lasts, on its own clock.")
@count_option("--executions", 50_000, "How many executions a run has.")
@repeats_option()
@store_option
@concurrency_option
async def policies(
    seconds: int, executions: int, repeats: int, concurrency: int, store: str | None
) -> "Sequence[Result]":
    """What policies do to those who wait, and what they cost against plain fifo.

    The first part is trials on a virtual clock: the server's own submissions, claims and reports over a store in
    memory, and a worker whose executions only take time. They come out the same every time. The second part is
    throughput on real processes: executions of ten tenants are submitted in bulk, a thousand of one tenant a request,
    run by a worker, and timed to the end of the last; policies take turns in one run, and the ratio is that of the
    medians to plain fifo's.
    """
    from horae.bench.policy_trials import TRIALS
    from horae.bench.results import machine, measured
    from horae.bench.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps(len(TRIALS) + repeats * len(POLICIES) * len(found)) as steps:
        for one in TRIALS:
            steps.begin(one.__name__)
            for figure in await one(seconds):
                settings = {"about": figure.about, "seconds": seconds, **machine()}
                results.append(measured("policies", figure.case, figure.metric, figure.unit, [figure.value], settings))
            steps.done()
        for source in found:
            results += await _throughput(source, executions, repeats, concurrency, steps)
    return results


async def _throughput(
    source: "Source", executions: int, repeats: int, concurrency: int, steps: Steps
) -> "list[Result]":
    from horae.bench.results import machine, measured, median
    from horae.bench.stage import staged
    from horae.bench.usage import cpu_seconds
    from horae.env import system_env

    rates: dict[str, list[float]] = {case: [] for case in POLICIES}
    spent: dict[str, list[float]] = {case: [] for case in POLICIES}
    async with source.fresh() as url, staged(system_env(), url) as stage:
        await stage.start_worker(concurrency)
        labelled = {"name": LABELLED, "python": JOB, "needs": ["worker=bench-0"]}
        await stage.client.jobs.apply(labelled)
        await _run(stage, JOB, WARM_UP)
        for _ in range(repeats):
            for case, policy in POLICIES.items():
                steps.begin(f"{source.name}: {case}")
                await stage.client.queues.set("default", policy=policy)
                before = cpu_seconds(stage.server.pid)
                rates[case].append(await _run(stage, LABELLED if "label" in case else JOB, executions))
                spent[case].append((cpu_seconds(stage.server.pid) - before) / executions * 1e6)
                steps.done()
    settings = {
        "store": await source.version(), "executions": executions, "tenants": TENANTS, "concurrency": concurrency,
        "repeats": repeats, "perRequest": 1000, **machine(),
    }  # fmt: skip
    plain = median(rates[PLAIN])
    figures: list[Result] = []
    for case, runs in rates.items():
        figures.append(measured("policies", f"{source.name} {case}", "executions", "1/s", runs, settings))
        figures.append(
            measured("policies", f"{source.name} {case}", "server processor", "us/execution", spent[case], settings)
        )
        if case != PLAIN:
            ratio = median(runs) / plain
            figures.append(measured("policies", f"{source.name} {case}", "ratio to fifo", "", [ratio], settings))
    return figures


async def _run(stage: "Stage", job: str, executions: int) -> float:
    """Executions a second, from the first request to the end of the last."""
    from horae.bench.load import drained

    begun = time.perf_counter()
    items = ({"i": i, "tenant": f"tenant-{i // 1000 % TENANTS}"} for i in range(executions))
    await stage.client.submit_many(job, items)
    await drained(stage)
    return executions / (time.perf_counter() - begun)
