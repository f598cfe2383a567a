"""The jobs that acceptance tests run."""

import os
from pathlib import Path

from horae import App
from tests.waiting import eventually

app = App()


@app.job()
def add(a: int, b: int) -> int:
    return a + b


@app.job(retries=2, retry={"delay": "100ms"})
def fails(message: str = "no") -> None:
    raise ValueError(message)


async def seen(path: str) -> str:
    """Say in a file that it began, and wait for another."""
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
    """Submits others."""
    return [(await ctx.submit("add", {"a": i, "b": 1})).id for i in range(n)]


@app.job()
async def stepwise(path: str, ctx) -> list[str]:
    """Remembers a step, and waits for a file before the next."""
    first = await ctx.step("first", _marked, f"{path}.first")
    await seen(path)
    return [first, await ctx.step("second", _marked, f"{path}.second")]


def _marked(path: str) -> str:
    """Count the runs of a step by the bytes of its file."""
    with Path(path).open("a") as file:
        file.write("x")
    return Path(path).name
