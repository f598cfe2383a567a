"""Types of jobs and workflows: mypy checks this file, and lines that it must refuse are marked."""

from typing import Any, assert_type

from horae import App, Context, cron, every, once, step
from horae.client.client import Client
from horae.client.views import ExecutionInfo, SubmittedItem
from horae.testing import Inline

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


@app.job(batch={"size": 10})
def index(items: list[dict[str, Any]]) -> None: ...


@app.job(name="clean-up")
async def clean(day: str) -> int:
    return len(day)


@app.job(timeout="5m", needs=["gpu"], unique=True, on_dependency_timeout="skip", retry=lambda failures, error: "1m")
def train() -> None: ...


def what_is_mistyped() -> None:
    app.job(priority="high")  # type: ignore[call-overload]
    app.job(retires=3)  # type: ignore[call-overload]
    app.job(on_dependency_timeout="never")  # type: ignore[call-overload]
    app.job(batch=3)  # type: ignore[call-overload]
    app.workflow(on_error="retry")  # type: ignore[call-overload]
    app.workflow(needs=["gpu"])  # type: ignore[call-overload]


async def what_a_definition_says(client: Client) -> None:
    await client.jobs.create("report", command=["python", "report.py"], retries=3, tags={"team": "data"})
    await client.jobs.edit("report", timeout=None)
    await client.jobs.create("report", comand="true")  # type: ignore[call-arg]
    await client.jobs.create("report", retries="many")  # type: ignore[arg-type]


@app.job(triggers=[cron("0 2 * * *", "Europe/Paris", dst_gap="skip", name="nightly"), every("5m", max_fires=3)])
def report() -> None: ...


def what_a_trigger_says() -> None:
    cron("0 2 * * *", dst_gap="first")  # type: ignore[arg-type]
    every("5m", dialect="quartz")  # type: ignore[call-arg]
    once("2030-01-01T00:00:00Z", overlp="skip")  # type: ignore[call-arg]


async def what_a_jobs_trigger_says(client: Client) -> None:
    await client.triggers.add("report", cron="0 2 * * *", timezone="Europe/Paris", name="nightly", spread="1h")
    await client.triggers.edit("report", "nightly", jitter=None, max_fires=10)
    await client.triggers.add("report", every="5m", max_fires="ten")  # type: ignore[arg-type]
    await client.triggers.edit("report", "nightly", crn="0 2 * * *")  # type: ignore[call-arg]


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


@app.workflow
def careful(day: str = "2026-11-15") -> Any:
    raw = extract.step(retries=3, when="${params.day != ''}", undo=load)(day)
    step.approval(roles=["operator"], timeout="2d", on_timeout="approve", after=raw)
    step.event("paid", filter="${event.payload.ok}", timeout="1d", on_timeout="skip")
    step.command(["ls"], params={"day": day}, until=lambda done: done["ok"], every="10s", max_runs=9)
    step.command(["ls"], retires=3)  # type: ignore[call-arg]
    step.command(["ls"], priority="high")  # type: ignore[arg-type]
    step.sleep("5m", retries=3)  # type: ignore[call-arg]
    step.signal("go", on_timeout="approve")  # type: ignore[arg-type]
    extract.step(join="allDome")  # type: ignore[arg-type]
    return raw


async def what_a_submission_says(client: Client) -> None:
    await client.submit("report", {"day": "2026-11-15"}, delay="10m", key="a", interval=("2026-11-14", "2026-11-15"))
    await client.submit_many("report", [{"n": 1}], priority=9, tags={"team": "data"}, atomic=True)
    await client.jobs.trigger("report", wait_for_dependencies=True)
    await client.submit("report", prio=9)  # type: ignore[call-arg]
    await client.submit_many("report", [{"n": 1}], key="a")  # type: ignore[call-arg]
    await client.jobs.trigger("report", delay=[])  # type: ignore[arg-type]
    await load.submit_many([{"rows": 1}], delai="5m")  # type: ignore[call-arg]


async def here_and_now(ctx: Context) -> None:
    assert_type(await extract(ctx, "2026-11-15"), dict[str, Any])
    assert_type(transform(ctx, 3, factor=2), int)
    assert_type(await clean("2026-11-15"), int)
    assert_type(await extract.submit(day="2026-11-15", delay="10m"), ExecutionInfo)
    assert_type(await extract.submit("2026-11-15"), ExecutionInfo)
    assert_type(await load.submit_many([{"rows": 1}]), list[SubmittedItem])
    assert_type(await etl.submit(day="2026-11-15"), ExecutionInfo)
    await extract.submit(3)  # type: ignore[call-overload]
    await load.submit()  # type: ignore[call-overload]
    await load.submit(rows=1, delay=[])  # type: ignore[call-overload]

    print(transform.submit(part=3).id)  # type: ignore[attr-defined]
    load.delay(rows=1)  # type: ignore[attr-defined]
    load.sync.delay(rows=1)  # type: ignore[attr-defined]


async def in_a_test() -> None:
    flow = Inline(etl, day="2026-11-15")
    flow.approve("check")
    assert_type(await flow.finish(), Any)
    assert_type(flow.states, dict[str, str])
    assert_type(Inline(transform, part=1).slept, float)


def without_a_loop() -> None:
    assert_type(extract.sync.submit("2026-11-15"), ExecutionInfo)
    assert_type(transform.sync.submit(part=3, factor=2, key="a"), ExecutionInfo)
    assert_type(load.sync.submit_many([{"rows": 1}]), list[SubmittedItem])
    assert_type(etl.sync.submit("2026-11-15"), ExecutionInfo)
    index.sync.submit(document=17)
    extract.sync.submit(3)  # type: ignore[call-overload]
    load.sync.submit("x")  # type: ignore[call-overload]
    clean.sync.submit(days="x")  # type: ignore[call-overload]
