"""The cost of policies, labels and limits: whole lives through a real server and worker, each beside plain fifo.

A machine's rate drifts during the measurement: its files grow, its processor is shared. Therefore, every case has a run
of plain fifo right before or after it, and its ratio is that of the two; the median of such pairs counts. A limit by
key has room for all executions in one case; in the other it is full, so that all but the first wait on another shelf
until one ends.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from bench.kit.app import app
from bench.kit.command import Steps
from bench.kit.load import drained
from bench.kit.results import Result, machine, measured
from bench.kit.stage import Stage, staged
from bench.kit.stores import Source
from bench.kit.usage import cpu_seconds
from bench.kit.wire import connected
from horae.env import system_env

TENANTS = 10
PER_REQUEST = 1_000
IN_FLIGHT = 4
WARM_UP = 2_000
ONE_IN = 10  # the divisor of the number of executions when each is a parcel
JOB, LABELLED, LIMITED = "bench-tenant", "bench-labelled", "bench-limited"
FULL_500, FULL_ONE = "bench-full-500", "bench-full-one"
PLAIN, PLAIN_500, PLAIN_ONE = "fifo", "fifo, parcels of 500", "fifo, parcels of one"
FAIR = {"kind": "fair", "by": "${params.tenant}"}


class Case(Struct, frozen=True, kw_only=True):
    """A case and the case it is compared with."""

    policy: Any = "fifo"
    job: str = JOB
    parcel: int = 0  # executions in one parcel; 0: as the SDK submits them
    beside: str = PLAIN

    def count(self, executions: int) -> int:
        """Return the number of executions of a run."""
        return max(1, executions // ONE_IN) if self.parcel == 1 else executions


CASES: Mapping[str, Case] = {
    PLAIN: Case(),
    "priority": Case(policy="priority"),
    "deadline": Case(policy="deadline"),
    "shortest": Case(policy="shortest"),
    "fair": Case(policy=FAIR),
    "fair, priority within": Case(policy={**FAIR, "within": "priority"}),
    "fifo, a label needed": Case(job=LABELLED),
    PLAIN_500: Case(parcel=500, beside=PLAIN_500),
    "a limit by key, parcels of 500": Case(job=LIMITED, parcel=500, beside=PLAIN_500),
    "a full limit by key, parcels of 500": Case(job=FULL_500, parcel=500, beside=PLAIN_500),
    PLAIN_ONE: Case(parcel=1, beside=PLAIN_ONE),
    "a limit by key, parcels of one": Case(job=LIMITED, parcel=1, beside=PLAIN_ONE),
    "a full limit by key, parcels of one": Case(job=FULL_ONE, parcel=1, beside=PLAIN_ONE),
}
COMPARED = tuple(name for name, case in CASES.items() if case.beside != name)


def _at_once(count: int) -> Mapping[str, Any]:
    """Return a limit of concurrent executions per tenant."""
    return {"limits": [{"key": "${params.tenant}", "concurrency": count}]}


OTHERS: Mapping[str, Mapping[str, Any]] = {  # jobs that differ from the first one only in these fields
    LABELLED: {"needs": ["worker=bench-0"]},
    LIMITED: _at_once(1_000_000),
    FULL_500: _at_once(1_000),  # two parcels
    FULL_ONE: _at_once(100),
}


class Run(Struct, frozen=True):
    """One run of a case."""

    rate: float  # executions per second, from the first request to the end of the last execution
    server: float  # microseconds of processor time per execution


async def costs(source: Source, executions: int, repeats: int, concurrency: int, steps: Steps) -> list[Result]:
    """Measure every case beside the one it is compared with."""
    runs: dict[str, list[Run]] = {name: [] for name in CASES}
    ratios: dict[str, list[float]] = {name: [] for name in COMPARED}
    async with source.fresh() as url, staged(system_env(), url) as stage:
        await stage.start_worker(concurrency)
        (first,) = (definition for definition in app.definitions() if definition["name"] == JOB)
        for name, own in OTHERS.items():
            await stage.client.jobs.apply({**first, "name": name, **own})
        for case in CASES.values():  # the server learns the usual length of each job
            await _run(stage, case, WARM_UP)
        for repeat in range(repeats):
            for name in COMPARED:
                steps.begin(f"{source.name}: {name}")
                pair = [CASES[name].beside, name]
                for one in pair if repeat % 2 == 0 else reversed(pair):
                    runs[one].append(await _run(stage, CASES[one], executions))
                ratios[name].append(runs[name][-1].rate / runs[pair[0]][-1].rate)
                steps.done()
    settings = {
        "store": await source.version(), "executions": executions, "tenants": TENANTS, "concurrency": concurrency,
        "repeats": repeats, "perRequest": PER_REQUEST, **machine(),
    }  # fmt: skip
    return list(_results(source.name, runs, ratios, settings))


def _results(
    store: str, runs: Mapping[str, list[Run]], ratios: Mapping[str, list[float]], settings: dict[str, Any]
) -> Iterator[Result]:
    for name, each in runs.items():
        case = f"{store} {name}"
        yield measured("policies", case, "executions", "1/s", [run.rate for run in each], settings)
        yield measured("policies", case, "server processor", "us/execution", [run.server for run in each], settings)
        if name in ratios:
            yield measured("policies", case, "ratio to fifo", "", ratios[name], settings)


async def _run(stage: Stage, case: Case, executions: int) -> Run:
    await stage.client.queues.set("default", policy=case.policy)
    count = case.count(executions)
    requests = list(_requests(stage, case, count)) if case.parcel else []
    used, begun = cpu_seconds(stage.server.pid), time.perf_counter()
    if requests:
        async with connected(stage.url, IN_FLIGHT) as wires:
            await wires.send_all(requests)
    else:
        await stage.client.submit_many(case.job, map(_params, range(count)))
    await drained(stage)
    took = time.perf_counter() - begun
    return Run(count / took, (cpu_seconds(stage.server.pid) - used) / count * 1e6)


def _params(i: int) -> dict[str, object]:
    """Return params; a thousand consecutive executions belong to one tenant."""
    return {"i": i, "tenant": f"tenant-{i // PER_REQUEST % TENANTS}"}


def _requests(stage: Stage, case: Case, count: int) -> Iterator[bytes]:
    """Yield requests whose executions form parcels of one size: each parcel has a unique deadline."""
    for lo in range(0, count, PER_REQUEST if case.parcel == 1 else case.parcel):
        body = _singles(case, lo, count) if case.parcel == 1 else _lot(case, lo, count)
        yield stage.request("POST", "/executions", msgspec.json.encode(body))


def _lot(case: Case, lo: int, count: int) -> Mapping[str, object]:
    tenant = f"tenant-{lo // case.parcel % TENANTS}"
    items = [{"i": i, "tenant": tenant} for i in range(lo, min(count, lo + case.parcel))]
    return {"job": case.job, "deadline": _apart(lo), "items": items}


def _singles(case: Case, lo: int, count: int) -> Mapping[str, object]:
    items = [
        {"job": case.job, "deadline": _apart(i), "params": {"i": i, "tenant": f"tenant-{i % TENANTS}"}}
        for i in range(lo, min(count, lo + PER_REQUEST))
    ]
    return {"items": items}


def _apart(number: int) -> str:
    seconds, micros = divmod(number, 1_000_000)
    return f"2100-01-01T00:00:{seconds:02}.{micros:06}Z"
