"""The jobs of `horae up --demo`: a command on a schedule, a function with progress, and one that fails for good."""

from typing import Any

from horae.client.app import App
from horae.worker.context import Context

app = App("demo")


@app.job("demo-primes")
def primes(ctx: Context, up_to: int = 50_000) -> dict[str, int]:
    """Count the primes below a number, telling how far it is."""
    found: list[int] = []
    for number in range(2, up_to):
        if number % (up_to // 10 or 1) == 0:
            ctx.progress(100 * number / up_to, f"{len(found)} primes below {number}")
            ctx.log(f"{len(found)} primes below {number}")
        if all(number % prime for prime in found[: int(number**0.5)] if prime * prime <= number):
            found.append(number)
    return {"primes": len(found), "largest": found[-1] if found else 0}


@app.job("demo-fails", retries=2, retry=["2s", "5s"])
def fails(ctx: Context) -> None:
    """Fail at every try; after the last one it is a dead letter (`horae dlq list`)."""
    raise RuntimeError(f"attempt {ctx.attempt} of a job that always fails")


TICK: dict[str, Any] = {
    "name": "demo-tick",
    "description": "Say what time it is, every minute.",
    "schedule": "* * * * *",
    "command": {"shell": 'echo "tick of $(date -u +%H:%M), execution $HORAE_EXECUTION_ID"'},
    "timeout": "30s",
}


class Demo:
    """The demo as `up` sees any app: functions for the worker, definitions for the store."""

    jobs = app.jobs

    def definitions(self) -> list[dict[str, Any]]:
        return [TICK, *app.definitions()]


FIRST = ("demo-primes", "demo-fails")  # run once when the demo is new, so that there is something to look at
