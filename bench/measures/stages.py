"""`python -m bench stages`: the processor time of an execution, layer by layer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.kit.command import Steps, bench, count_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stores import Source
    from bench.runs.life import Shape
    from horae.env import Env


@bench("python -m bench stages", "python -m bench stages --rounds 500 --store sqlite://")
@count_option("--rounds", 100, "The number of measurements per stage; the median counts.")
@count_option("--together", 500, "Executions that are processed together.")
@store_option
async def stages(rounds: int, together: int, store: str | None) -> "Sequence[Result]":
    """The stages of an execution's life, timed one by one.

    Everything runs in this one process, one stage after another, by the functions that server and worker call; figures
    are the wall time of a stage divided by its number of executions. Three shapes are measured: a full parcel, as many
    parcels of one in one transaction and exchange, and a single execution. Stages marked + are whole transactions, of
    which "commit alone" is the part that every transaction pays. HTTP is the round trip of an empty request to a
    separate server process. In use these stages overlap on several cores, so their sum is not the inverse of the
    throughput.
    """
    from bench.kit.stores import sources
    from bench.runs.life import Shape
    from horae.env import system_env

    env = system_env()
    shapes = [
        Shape(f"a parcel of {together}", together, 1, rounds),
        Shape(f"{together} parcels of one", 1, together, rounds),
        Shape("one alone", 1, 1, rounds),
    ]
    results: list[Result] = []
    with sources(store, env) as found, Steps(len(shapes) * rounds * len(found)) as steps:
        for source in found:
            round_trip = await _round_trip(env, source, rounds)
            for shape in shapes:
                steps.begin(f"{source.name}: {shape.name}")
                results += await _measure(env, source, shape, round_trip, steps)
    return results


async def _measure(env: "Env", source: "Source", shape: "Shape", round_trip: float, steps: Steps) -> "list[Result]":
    from bench.kit.results import machine, measured, median
    from bench.runs.life import living

    async with source.fresh() as url, living(env, url, shape) as life:
        for _ in range(shape.rounds):
            await life.round()
            steps.done()
    settings = {"store": await source.version(), "rounds": shape.rounds, **machine()}
    case = f"{source.name} {shape.name}"
    each = {
        "HTTP, submission": round_trip / shape.per_parcel,
        **{stage: median(took) for stage, took in life.stages().items()},
        "HTTP, exchange": round_trip / shape.size,
    }
    each["sum"] = sum(value for stage, value in each.items() if stage != "commit alone")
    return [measured("stages", case, stage, "us/execution", [value], settings) for stage, value in each.items()]


async def _round_trip(env: "Env", source: "Source", rounds: int) -> float:
    """Return the microseconds of a minimal request to a server process."""
    from bench.kit.results import median
    from bench.kit.stage import staged
    from bench.kit.wire import build, connected

    async with source.fresh() as url, staged(env, url) as stage, connected(stage.url, 1) as client:
        request = build(stage.url, stage.key, "GET", "/healthz")
        await client.send_all([request] * 20)
        return median(await client.send_all([request] * rounds)) * 1e6
