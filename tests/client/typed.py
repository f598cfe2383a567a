"""What a type checker makes of jobs and workflows: mypy reads this file, and a line it should refuse says so."""

from typing import Any, assert_type

from horae import App, Context

app = App()


@app.job
async def extract(ctx: Context, day: str) -> dict[str, Any]:
    await ctx.artifact("day.txt", day.encode())
    return {"rows": 3, "parts": [1, 2]}


@app.job(retries=3)
def transform(ctx: Context, part: int, factor: int = 1) -> int:
    return part * factor


@app.job
def load(rows: int) -> None: ...


@app.job(name="clean-up")
async def clean(day: str) -> int:
    return len(day)


@app.workflow
def etl(day: str = "2026-11-15") -> Any:
    raw = extract(day)
    one = transform(raw["rows"], factor=2)
    load(one)
    transform.map(raw["parts"], factor=2)
    extract(day, 3)  # type: ignore[call-overload]
    transform("x")  # type: ignore[call-overload]
    load("x")  # type: ignore[arg-type]
    load()  # type: ignore[call-arg]
    return raw


async def here_and_now(ctx: Context) -> None:
    assert_type(await extract(ctx, "2026-11-15"), dict[str, Any])
    assert_type(transform(ctx, 3, factor=2), int)
    assert_type(await clean("2026-11-15"), int)
    await extract.submit(day="2026-11-15", delay="10m")
