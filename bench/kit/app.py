"""The jobs that benches run: `horae worker --app bench.kit.app:app`."""

import time
from collections import Counter
from threading import Event

from horae.client.app import App
from horae.env import system_env
from horae.worker.code.context import Context

BURST = 50  # lines written together
LINE = "%d request %08x of writer %d took %d ms, path=/api/v1/items/%d/parts, status=200, cached=no"

app = App("bench")
runs: Counter[int] = Counter()  # the number of runs of each visit in this process
_clock = system_env().clock


@app.job("bench-noop")
def noop(i: int) -> int:
    """Return the parameter."""
    return i


@app.job("bench-tenant")
def of_tenant(i: int, tenant: str) -> int:
    """Return the parameter, for a tenant."""
    return i


@app.job("bench-stamp")
def stamp() -> int:
    """Return the start of this function, by the clock that all processes of a machine share."""
    return time.perf_counter_ns()


@app.job("bench-hold")
async def hold(seconds: float) -> None:
    """Sleep for a while."""
    await _clock.sleep(seconds)


@app.job("bench-steps", durable=True)
async def stepping(ctx: Context, steps: int) -> int:
    """Store the results of some durable steps, one after another."""
    total = 0
    for i in range(steps):
        total += await ctx.step(f"step {i}", int, i)
    return total


@app.job("bench-chatter", isolation="thread")
def chatter(ctx: Context, lines: int, rate: int, writer: int) -> int:
    """Write numbered lines, at a rate or as fast as they are accepted."""
    begun, pause = time.perf_counter(), Event()
    for number in range(lines):
        if rate and number % BURST == 0 and (early := begun + number / rate - time.perf_counter()) > 0:
            pause.wait(early)
        mixed = number * 2_654_435_761 % 2**32
        ctx.log(
            "%d request %08x of writer %d took %d ms, path=/api/v1/items/%d", number, mixed, writer, mixed % 999, mixed
        )
    return lines


@app.job("bench-visit")
async def visit(i: int) -> int:
    """Count the run in the process that executes it."""
    runs[i] += 1
    return i
