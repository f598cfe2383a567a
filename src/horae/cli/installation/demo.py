"""The jobs of `horae up --demo`: enough to fill every page, and light enough to run permanently.

Functions wait instead of computing, so that an idle demo costs almost nothing.
"""

from typing import Annotated, Any, ClassVar, Literal
from zlib import crc32

from msgspec import Meta

from horae.client.app import App, every
from horae.env import SystemClock
from horae.worker.code.context import Context

QUEUE = "demo-orders"
CUSTOMERS = ("acme", "globex", "initech", "umbrella")
PARTS = ("north", "east", "south", "west")

CLOCK = SystemClock()

app = App("demo")
step_functions = App("demo-parts")  # functions of the workflow's steps: known to the worker, but not jobs of their own


def _drawn(ctx: Context, low: int, high: int, which: object = 0) -> int:
    """Return a number that looks random but is the same every time within an attempt."""
    return low + crc32(f"{ctx.execution_id}/{ctx.attempt}/{which}".encode()) % (high - low + 1)


@app.job("demo-primes", tags={"demo": "form"})
def primes(
    ctx: Context,
    up_to: Annotated[int, Meta(ge=2, le=200_000, description="Count the primes below this number.")] = 50_000,
    tell: Annotated[Literal["often", "seldom"], Meta(description="How often the job reports its progress.")] = "often",
) -> dict[str, int]:
    """Count the primes below a number, with progress reports. Trigger it to see the form and the log."""
    found: list[int] = []
    pace = up_to // (10 if tell == "often" else 2) or 1
    for number in range(2, up_to):
        if number % pace == 0:
            ctx.progress(100 * number / up_to, f"{len(found)} primes below {number}")
            ctx.log(f"{len(found)} primes below {number}")
        if all(number % prime for prime in found[: int(number**0.5)] if prime * prime <= number):
            found.append(number)
    return {"primes": len(found), "largest": found[-1] if found else 0}


@app.job(
    "demo-import",
    schedule=every("2m"),
    timeout="5m",
    preemptible=True,  # stopping the demo need not wait for it
    tags={"demo": "progress", "team": "data"},
)
async def import_files(ctx: Context, files: Annotated[int, Meta(ge=1, le=100)] = 12) -> dict[str, int]:
    """Import files one after the other, with progress and a log to follow."""
    rows = 0
    for number in range(1, files + 1):
        await CLOCK.sleep(5)
        rows += (new := _drawn(ctx, 200, 2_000, number))
        ctx.log(f"file {number} of {files}: {new} rows")
        if new > 1_900:
            ctx.log.warning(f"file {number} is larger than usual")
        ctx.progress(100 * number / files, f"{number} of {files} files")
    return {"files": files, "rows": rows}


@app.job("demo-flaky", schedule=every("1m"), retries=5, retry=["2s", "5s", "10s"], tags={"demo": "retries"})
def flaky(ctx: Context) -> str:
    """Fail now and then, and succeed in a retry."""
    if _drawn(ctx, 1, 10) <= 4:
        raise ConnectionError("the partner's server did not answer")
    return f"answered at attempt {ctx.attempt}"


@app.job("demo-fails", schedule="17 * * * *", retries=2, retry=["2s", "5s"], tags={"demo": "dead-letters"})
def fails(ctx: Context) -> None:
    """Fail at every attempt; after the last, the execution is a dead letter (`horae dlq list`)."""
    raise RuntimeError(f"attempt {ctx.attempt} of a job that always fails")


@app.job(
    "demo-order",
    queue=QUEUE,
    limits=[{"key": "${params.customer}", "concurrency": 1}],
    tags={"demo": "limits", "team": "shop"},
)
async def order(ctx: Context, customer: str = "acme", items: Annotated[int, Meta(ge=1, le=20)] = 3) -> str:
    """Handle an order: one at a time for each customer, while others wait in the queue."""
    await CLOCK.sleep(items / 2)
    ctx.log(f"{items} items for {customer} are packed")
    return f"{items} items"


@app.job("demo-shop", schedule=every("45s"), tags={"demo": "limits", "team": "shop"})
async def shop(ctx: Context) -> int:
    """Let some customers order at once; their executions are children of this one."""
    orders = [
        {"customer": CUSTOMERS[_drawn(ctx, 0, len(CUSTOMERS) - 1, f"who{n}")], "items": _drawn(ctx, 1, 6, n)}
        for n in range(_drawn(ctx, 3, 8))
    ]
    await ctx.submit_many("demo-order", orders)
    return len(orders)


@step_functions.job("demo-extract")
async def extract(ctx: Context, rows: int = 0) -> dict[str, Any]:
    """Return the parts, and the number of rows."""
    await CLOCK.sleep(2)
    return {"rows": rows or _drawn(ctx, 1_000, 6_000), "parts": list(PARTS)}


@step_functions.job("demo-transform")
async def transform(ctx: Context, part: str) -> dict[str, Any]:
    """Transform one part."""
    await CLOCK.sleep(_drawn(ctx, 1, 4))
    ctx.log(f"{part} is transformed")
    return {"part": part}


@step_functions.job("demo-publish")
async def publish(rows: int, parts: list[Any]) -> str:
    """Return a summary of the published rows."""
    await CLOCK.sleep(1)
    return f"{rows} rows of {len(parts)} parts"


TICK: dict[str, Any] = {
    "name": "demo-tick",
    "description": "Say what time it is, every minute.",
    "schedule": "* * * * *",
    "command": {"shell": 'echo "tick of $(date -u +%H:%M), execution $HORAE_EXECUTION_ID"'},
    "timeout": "30s",
    "tags": {"demo": "cron"},
}
REPORT: dict[str, Any] = {
    "name": "demo-report",
    "description": "A report on workday mornings. It is paused: resume it, and it fires again.",
    "schedule": {"cron": "0 9 * * MON-FRI", "timezone": "Europe/Paris"},
    "command": "echo the report",
    "tags": {"demo": "paused", "team": "data"},
}
PIPELINE: dict[str, Any] = {
    "name": "demo-pipeline",
    "description": "Extract, transform each part, and publish; more than 3000 rows need an approval.",
    "schedule": {"every": "10m", "overlap": "skip"},
    "params": {"rows": 0},
    "schema": {
        "type": "object",
        "properties": {
            "rows": {
                "type": "integer",
                "minimum": 0,
                "description": "More than 3000 rows need an approval; 0 means a random number.",
            }
        },
    },
    "tags": {"demo": "workflow", "team": "data"},
    "workflow": {
        "steps": [
            {"name": "extract", "python": "demo-extract"},
            {
                "name": "transform",
                "python": "demo-transform",
                "foreach": {"items": "${steps.extract.result.parts}", "concurrency": 2},
                "params": {"part": "${item}"},
            },
            {
                "name": "choose",
                "after": ["transform"],
                "switch": [{"when": "${steps.extract.result.rows > 3000}", "then": ["ask"]}, {"else": ["note"]}],
            },
            {
                "name": "ask",
                "approval": {
                    "roles": ["operator"],
                    "message": "Publish ${steps.extract.result.rows} rows?",
                    "timeout": "2h",
                    "onTimeout": "approve",
                },
            },
            {"name": "note", "command": ["echo", "few rows: no approval is needed"], "params": {}},
            {
                "name": "publish",
                "python": "demo-publish",
                "after": ["ask", "note"],
                "join": "noneFailedOneSuccess",
                "params": {"rows": "${steps.extract.result.rows}", "parts": "${steps.transform.result}"},
            },
        ]
    },
}

# Jobs that run once when the demo is new, so that pages have content; and jobs that start paused.
FIRST: dict[str, dict[str, Any]] = {
    "demo-primes": {},
    "demo-import": {},
    "demo-fails": {},
    "demo-shop": {},
    "demo-pipeline": {"rows": 4_200},
}
PAUSED = ("demo-report",)


class Demo:
    """The demo in the form of an app for `up`: functions for the worker, definitions for the store."""

    jobs: ClassVar = {**app.jobs, **step_functions.jobs}

    def definitions(self) -> list[dict[str, Any]]:
        return [TICK, *app.definitions(), REPORT, PIPELINE]
