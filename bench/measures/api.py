"""`python -m bench api`: the response times of the UI's pages."""

from collections.abc import Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from bench.kit.command import Steps, bench, count_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stage import Stage
    from bench.kit.stores import Source
    from horae.env import Env


class Size(Struct, frozen=True, kw_only=True):
    """The size of the store, and the number of requests per page."""

    jobs: int
    history: int
    samples: int


@bench("python -m bench api", "python -m bench api --jobs 100000 --history 10000000 --store postgresql:// -o jsonl")
@count_option("--jobs", 20_000, "Jobs in the store, each with a trigger.")
@count_option("--history", 500_000, "Their ended executions, each in its own row.")
@count_option("--samples", 100, "Requests per page.")
@store_option
async def api(store: str | None, **size: int) -> "Sequence[Result]":
    """Durations of the overview, lists and statistics with many jobs and a long history.

    The jobs of one namespace ran for a week, and servers stored their statistics. Each page is requested separately,
    one request after the other, over HTTP.
    """
    from bench.kit.stores import sources
    from horae.env import system_env

    env, chosen = system_env(), Size(**size)
    results: list[Result] = []
    with sources(store, env) as found, Steps(2 * len(found)) as steps:
        for source in found:
            async with source.fresh() as url:
                results += await _measure(env, source, url, chosen, steps)
    return results


async def _measure(env: "Env", source: "Source", url: str, size: Size, steps: Steps) -> "list[Result]":
    from bench.kit.results import machine, measured, percentile
    from bench.kit.stage import staged
    from bench.kit.wire import connected
    from bench.runs.api_fill import filling_api

    steps.begin(f"{source.name}: filling")
    async with filling_api(env, url) as filler:
        await filler.days()
        jobs = await filler.jobs(size.jobs)
        await filler.history(jobs, size.history)
        await filler.flow()
        await filler.statistics(jobs)
    await source.settle(url)
    steps.done()
    steps.begin(f"{source.name}: asking")
    settings = {"store": await source.version(), "jobs": size.jobs, "history": size.history, **machine()}
    results: list[Result] = []
    async with staged(env, url) as stage, connected(stage.url, 1) as client:
        for name, paths in (await _pages(stage, size)).items():
            requests = [stage.request("GET", path) for path in paths]
            await client.send_all(requests[:1])
            took = [1000 * each for each in await client.send_all(islice(cycle(requests), size.samples))]
            for metric, share in (("p50", 0.5), ("p99", 0.99)):
                case = f"{source.name} {name}"
                results.append(measured("api", case, metric, "ms", [percentile(took, share)], settings))
    steps.done()
    return results


async def _pages(stage: "Stage", size: Size) -> dict[str, list[str]]:
    """Return the requests of the UI's pages."""
    from bench.runs.api_fill import DAYS, FLOW, names
    from horae.env import SECOND
    from horae.model.base.instant import format_instant
    from horae.model.executions.tally import DAY

    some, now = list(names(size.jobs)), stage.env.now()
    day, week = (format_instant(now - days * DAY * SECOND) for days in (1, DAYS))
    return {
        "overview": ["/overview"],
        "overview of a day": [f"/overview?from={day}"],
        "overview of a week": [f"/overview?from={week}"],
        "jobs": ["/jobs?limit=50"],
        "jobs with statistics": ["/jobs?limit=50&statistics=true"],
        "jobs with statistics, further pages": await _further(stage, "/jobs?limit=50&statistics=true"),
        "jobs by search": [f"/jobs?limit=50&statistics=true&search={name[-5:]}" for name in some],
        "jobs by search, none": ["/jobs?limit=50&statistics=true&search=nowhere"],
        "jobs by prefix": [f"/jobs?limit=50&statistics=true&prefix={name[:-2]}" for name in some],
        "jobs by tag": [f"/jobs?limit=50&statistics=true&tag=team%3Dteam-{n}" for n in range(40)],
        "jobs by queue": ["/jobs?limit=50&statistics=true&queue=default"],
        "jobs by state": ["/jobs?limit=50&statistics=true&state=paused"],
        "statistics of a job": [f"/jobs/{name}/statistics" for name in some],
        "days of a job": [f"/jobs/{name}/days" for name in some],
        "grid of a job": [f"/jobs/{name}/grid?limit=100" for name in some],
        "grid of a workflow": [f"/jobs/{FLOW}/grid?limit=100"],
        "executions": ["/executions?limit=50"],
        "executions, further pages": await _further(stage, "/executions?limit=50"),
        "executions that failed": ["/executions?limit=50&status=failed"],
        "executions of a job": [f"/jobs/{name}/executions?limit=50" for name in some],
        "dead letters by error": [f"/dlq/groups?since={day}"],
        "fires": ["/fires?limit=50"],
    }


async def _further(stage: "Stage", path: str) -> list[str]:
    """Return the paths of the pages after the first."""
    from bench.kit.wire import connected

    found: list[str] = []
    async with connected(stage.url, 1) as client:
        for _ in range(10):
            page = msgspec.json.decode(await client.ask(stage.request("GET", found[-1] if found else path)))
            if page["nextCursor"] is None:
                break
            found.append(f"{path}&cursor={page['nextCursor']}")
    return found or [path]
