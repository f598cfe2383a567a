"""The jobs that acceptance tests run."""

import gc
import os
import signal
from pathlib import Path

from horae import App
from tests.waiting import eventually

app = App()


@app.job()
def add(a: int, b: int) -> int:
    return a + b


@app.job()
def frozen_objects() -> int:
    return gc.get_freeze_count()


@app.job(retries=2, retry={"delay": "100ms"})
def fails(message: str = "no") -> None:
    raise ValueError(message)


async def seen(path: str) -> str:
    """Report the start in a file, and wait for another file."""
    Path(f"{path}.{os.getpid()}.began").touch()
    await eventually(lambda: Path(path).exists(), within=600)
    return "seen"


@app.job()
async def waits_for(path: str) -> str:
    return await seen(path)


@app.job(delivery="at-most-once")
async def waits_once(path: str) -> str:
    return await seen(path)


@app.job()
async def parent(n: int, ctx) -> list[str]:
    """Submit other executions."""
    return [(await ctx.submit("add", {"a": i, "b": 1})).id for i in range(n)]


@app.job()
async def stepwise(path: str, ctx) -> list[str]:
    """Remember a step, and wait for a file before the next one."""
    first = await ctx.step("first", _marked, f"{path}.first")
    await seen(path)
    return [first, await ctx.step("second", _marked, f"{path}.second")]


def _marked(path: str) -> str:
    """Count the runs of a step by the bytes of its file."""
    with Path(path).open("a") as file:
        file.write("x")
    return Path(path).name


def _journey(folder: str, kill: int):
    """Return the two actions of a durable journey: record an effect, and pass a step, which kills the process once."""
    reached = iter(range(1, 100))

    def effect(name: str) -> str:
        with Path(folder, "effects").open("a") as file:
            file.write(f"{name}\n")
        return name

    def passed() -> None:
        died = Path(folder, "died")
        if next(reached) == kill and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return effect, passed


async def _travel(ctx, folder: str, kill: int) -> list[object]:
    effect, passed = _journey(folder, kill)
    got: list[object] = []
    for name in ("reserve", "charge", "charge"):
        got.append(await ctx.step(name, effect, name))
        passed()
    await ctx.sleep("1100ms")
    passed()
    got.append(await ctx.wait_for("go"))
    passed()
    got += await ctx.gather(*(ctx.step(f"mail {i}", effect, f"mail{i}") for i in range(3)))
    passed()
    await ctx.checkpoint(len(got))
    passed()
    return [*got, await ctx.restored()]


@app.job(durable=True, retries=1, retry={"delay": "50ms"}, isolation="process")
async def travels(ctx, folder: str, kill: int) -> list[object]:
    """Kill its own process; the worker stays."""
    return await _travel(ctx, folder, kill)


@app.job(durable=True)
async def travels_here(ctx, folder: str, kill: int) -> list[object]:
    """Kill its worker."""
    return await _travel(ctx, folder, kill)


@app.job()
def spans() -> str:
    """Open a span of its own within the trace of its attempt."""
    from opentelemetry import trace

    with trace.get_tracer("tests").start_as_current_span("inner"):
        return f"{trace.get_current_span().get_span_context().trace_id:032x}"
