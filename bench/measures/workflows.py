"""`python -m bench workflows`: the latency between steps of workflows, and steps per second."""

import time
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bench.kit.command import Steps, bench, concurrency_option, count_option, repeats_option, store_option
from horae.env import SECOND

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stage import Stage

WITHIN = 300.0  # seconds
LOOK = 0.02  # seconds between checks for the end; each check uses the two cores that are measured
DIAMONDS = 5  # of four steps each, one after another, in one workflow
LARGEST = 998  # parallel steps in one workflow, with one before and one after them

Document = dict[str, Any]


@bench("python -m bench workflows", "python -m bench workflows --chain 100 --foreach 10000 --store postgresql://")
@count_option("--chain", 100, "Steps one after another.")
@count_option("--fan", 1000, "Parallel executions between two steps.")
@count_option("--diamonds", 100, "Workflows of 20 steps that run at the same time.")
@count_option("--foreach", 10_000, "Items of one foreach.")
@count_option("--remembered", 4_000, "Steps of durable functions.")
@repeats_option()
@store_option
@concurrency_option
async def workflows(
    chain: int,
    fan: int,
    diamonds: int,
    foreach: int,
    remembered: int,
    repeats: int,
    store: str | None,
    concurrency: int,
) -> "Sequence[Result]":
    """The latency between steps of workflows, and steps per second.

    A hop is measured from the first line of one step's function to that of the next, by the clock that all processes of
    a machine share; all steps are no-ops in one worker over HTTP. A fan is timed from its submission to its end, by the
    server's clock, as a foreach and as separate steps (998 at most). Diamonds are workflows of 20 steps, five times
    one, two and one; they are timed from before their submission to the last end in the server's records, and so is a
    foreach; the time of checking for ends is not included.

    Remembered steps are those of durable functions, one after another in 50 functions side by side.
    """
    from bench.kit.stage import staged
    from bench.kit.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps(6 * repeats * len(found)) as steps:
        for source in found:
            async with source.fresh() as url, staged(env, url) as stage:
                await stage.start_worker(concurrency)
                settings = {"store": await source.version(), "concurrency": concurrency, "repeats": repeats}
                await _define(stage, chain, fan)
                taken: dict[tuple[str, str, str], list[float]] = {}
                for _ in range(repeats):
                    sizes = (chain, fan, diamonds, foreach, remembered)
                    for figure, value in (await _round(stage, *sizes, steps, source.name)).items():
                        taken.setdefault(figure, []).append(value)
                sized = {"chain": chain, "fan": fan, "diamonds": diamonds, "foreach": foreach, "remembered": remembered}
                results += _results(source.name, taken, {**settings, **sized})
    return results


async def _define(stage: "Stage", chain: int, fan: int) -> None:
    stamp: Document = {"job": "bench-stamp"}
    noop: Document = {"job": "bench-noop", "params": {"i": 1}}
    line = [{"name": f"s{i}", **stamp, "after": [f"s{i - 1}"] if i else []} for i in range(chain)]
    wide = [{"name": f"w{i}", **noop, "after": ["first"]} for i in range(min(fan, LARGEST))]
    each = {"items": [0] * fan}
    await _apply(stage, "bench-chain", line)
    await _apply(stage, "bench-fan", [
        {"name": "first", **noop}, {"name": "wide", "job": "bench-noop", "after": ["first"], "foreach": each,
         "params": {"i": "${index}"}}, {"name": "last", **noop, "after": ["wide"]},
    ])  # fmt: skip
    await _apply(
        stage,
        "bench-wide",
        [{"name": "first", **noop}, *wide, {"name": "last", **noop, "after": [w["name"] for w in wide]}],
    )
    await _apply(stage, "bench-diamond", [step for number in range(DIAMONDS) for step in _diamond(number, noop)])
    await stage.client.jobs.apply(
        {
            "name": "bench-foreach",
            "params": {"items": []},
            "workflow": {
                "output": 1,
                "steps": [
                    {"name": "each", "job": "bench-noop", "foreach": "${params.items}", "params": {"i": "${item}"}}
                ],
            },
        }
    )


async def _apply(stage: "Stage", name: str, steps: list[Document]) -> None:
    await stage.client.jobs.apply({"name": name, "workflow": {"steps": steps, "output": 1}})


def _diamond(number: int, noop: Document) -> list[Document]:
    """Return one step, two steps after it, and one after both; the first follows the previous diamond."""
    top, left, right, bottom = (f"{place}{number}" for place in ("top", "left", "right", "bottom"))
    before = [f"bottom{number - 1}"] if number else []
    return [
        {"name": top, **noop, "after": before},
        {"name": left, **noop, "after": [top]},
        {"name": right, **noop, "after": [top]},
        {"name": bottom, **noop, "after": [left, right]},
    ]


Figures = dict[tuple[str, str, str], float]


async def _round(
    stage: "Stage", chain: int, fan: int, diamonds: int, foreach: int, remembered: int, steps: Steps, name: str
) -> Figures:
    from bench.kit.results import percentile

    figures: Figures = {}
    steps.begin(f"{name}: chain")
    hops = await _hops(stage, chain)
    figures["chain", "hop p50", "ms"] = percentile(hops, 0.5)
    figures["chain", "hop p99", "ms"] = percentile(hops, 0.99)
    steps.done()
    for case, job in (("fan by foreach", "bench-fan"), ("fan of steps", "bench-wide")):
        steps.begin(f"{name}: {case}")
        figures[case, "took", "s"] = await _took(stage, job)
        steps.done()
    steps.begin(f"{name}: diamonds")
    figures["diamonds", "steps", "1/s"] = 4 * DIAMONDS * diamonds / await _all(stage, "bench-diamond", [{}] * diamonds)
    steps.done()
    steps.begin(f"{name}: foreach")
    figures["foreach", "steps", "1/s"] = foreach / await _all(stage, "bench-foreach", [{"items": list(range(foreach))}])
    steps.done()
    steps.begin(f"{name}: durable")
    figures["durable", "remembered steps", "1/s"] = await _remember_steps(stage, 50, max(1, remembered // 50))
    steps.done()
    return figures


async def _hops(stage: "Stage", chain: int) -> list[float]:
    """Return the milliseconds between the starts of consecutive steps."""
    made = await stage.client.submit("bench-chain")
    await _ended(stage, [made.id])
    starts: list[int] = []
    cursor: str | None = None
    while len(starts) < chain:
        page = await stage.client.executions.list(parent=made.id, limit=500, cursor=cursor)
        starts += [one.result for one in page]
        cursor = page.next_cursor
        if cursor is None:
            break
    return [(after - before) / 1e6 for before, after in pairwise(sorted(starts))]


async def _took(stage: "Stage", job: str) -> float:
    """Return the seconds from a submission to the end, by the server's times."""
    made = await stage.client.submit(job)
    (done,) = await _ended(stage, [made.id])
    began, ended = (datetime.fromisoformat(done[name]) for name in ("queuedAt", "completedAt"))
    return (ended - began).total_seconds()


async def _all(stage: "Stage", job: str, params: list[Document]) -> float:
    """Return the seconds from before the submission until the last execution has ended."""
    began = stage.env.now()
    made = await stage.client.submit_many(job, params)
    done = await _ended(stage, [one.id for one in made if one.id is not None])
    ended = max(datetime.fromisoformat(one["completedAt"]) for one in done)
    return ended.timestamp() - began / SECOND


async def _ended(stage: "Stage", ids: Sequence[str]) -> list[Document]:
    """Wait for the end of executions and return them; a failed one ends the bench."""
    from horae.errors import HoraeError

    left, found = list(ids), list[Document]()

    async def all_ended() -> bool:
        while left:
            one = await stage.client.executions.get(left[-1])
            if not one.is_final:
                return False
            if one.status != "success":
                raise HoraeError(f"An execution of the bench ended as {one.status}: {one.raw.get('errorMessage')}")
            found.append(one.raw)
            left.pop()
        return True

    await stage.until(all_ended, f"{len(ids)} workflows to end", WITHIN, LOOK)
    return found


def _results(store: str, taken: dict[tuple[str, str, str], list[float]], settings: Document) -> "list[Result]":
    from bench.kit.results import machine, measured

    return [
        measured("workflows", f"{store} {case}", metric, unit, values, {**settings, **machine()})
        for (case, metric, unit), values in taken.items()
    ]


async def _remember_steps(stage: "Stage", executions: int, steps: int) -> float:
    """Run durable executions side by side in the stage's worker; return the stored steps per second.

    The steps of an execution run one after another, so this measures the group commit of concurrent steps.
    """
    began = time.perf_counter()
    made = await stage.client.submit_many("bench-steps", [{"steps": steps}] * executions)
    last = [str(one.id) for one in made]

    async def all_ended() -> bool:
        while last:
            if not (await stage.client.executions.get(last[-1])).is_final:
                return False
            last.pop()
        return True

    await stage.until(all_ended, f"{executions} executions of {steps} steps", WITHIN)
    return executions * steps / (time.perf_counter() - began)
