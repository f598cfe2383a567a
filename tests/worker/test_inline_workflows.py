"""Workflows and whole apps in a test: the real engine on a virtual clock."""

import asyncio
import threading
from typing import Any

import pytest

from horae import App, Context, every, step
from horae.errors import BadInput
from horae.testing import Inline, Waits, WorkflowFailed, server

MINUTE, HOUR, DAY = 60, 3600, 86400
DONE: list[str] = []
app = App()
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def done() -> list[str]:
    DONE.clear()
    return DONE


@app.job
def parts(count: int = 3) -> list[int]:
    return list(range(count))


@app.job(retries=2, retry={"delay": "10m", "factor": 1})
def twice(ctx: Context, n: int) -> int:
    if n == 1 and ctx.failures < 2:
        raise OSError("not yet")
    return 2 * n


@app.job(queue="mail")
def note(text: Any) -> str:
    DONE.append(str(text))
    return str(text)


@app.job
def fails() -> None:
    raise ValueError("no luck")


@app.job
def poll() -> bool:
    DONE.append("poll")
    return len(DONE) == 3


@app.job(durable=True)
async def rests(ctx: Context) -> str:
    await ctx.sleep("1d")
    return "rested"


@app.workflow(schedule=every("1h"))
def mapped(count: int = 3):
    found = twice.map(parts(count), concurrency=2)
    return {"found": found, "note": note(f"{found}")}


@app.workflow
def looped():
    poll.step(until=lambda result: result == True, every="1h", max_runs=5)() >> rests()  # noqa: E712


@app.workflow
def branched(big: bool = False):
    yes, no = note.step(name="yes")("yes"), note.step(name="no")("no")
    step.switch((big == True, yes), default=no)  # noqa: E712


@app.workflow
def asking():
    said = step.approval(name="boss", timeout="2d")
    said >> note("approved")


@app.workflow
def listening():
    told = step.signal("go", name="go", timeout="3d")
    heard = step.event("paid", name="paid", timeout="3d")
    return [told["n"], heard["payload"]["amount"], note(told["n"])]


@app.workflow
def undone():
    first = note.step(undo=lambda result: note("undone"))("made")
    first >> fails()


@undone.on_failure
def sorry(error):
    note(f"sorry: {error['message']}")


@app.workflow
def outer():
    return mapped(2)


async def test_items_are_tried_again_by_their_own_rules():
    run = Inline(mapped)
    result = await run.finish()
    assert result == {"found": [0, 2, 4], "note": "[0, 2, 4]"}
    assert 2 * MINUTE * 9 < run.slept < 2 * MINUTE * 12
    assert run.states == {"parts": "success", "twice": "success", "note": "success"}
    assert DONE == ["[0, 2, 4]"]  # the schedule did not fire meanwhile


async def test_loops_and_durable_functions_wait_on_its_clock():
    run = Inline(looped)
    await run.finish()
    assert (DONE, round(run.slept / HOUR)) == (["poll"] * 3, 2 + 24)


@pytest.mark.parametrize(("big", "chosen"), [(True, "yes"), (False, "no")])
async def test_switches_choose_a_branch(big, chosen):
    run = Inline(branched, big=big)
    await run.finish()
    assert [name for name in ("yes", "no") if run.states[name] == "success"] == [chosen]


async def test_approvals_are_given_refused_or_time_out():
    agreed, refused, unanswered = Inline(asking), Inline(asking), Inline(asking)
    agreed.approve("boss")
    refused.reject("boss", "too dear")
    await agreed.finish()
    with pytest.raises(WorkflowFailed, match="too dear") as told:
        await refused.finish()
    with pytest.raises(WorkflowFailed):
        await unanswered.finish()
    assert told.value.execution.status == "failed"
    assert (agreed.slept < HOUR, 2 * DAY <= unanswered.slept < 2 * DAY + HOUR) == (True, True)
    assert DONE == ["approved"]


async def test_signals_and_events_are_given_before_it_runs():
    run = Inline(listening)
    run.event("paid", {"amount": 7})
    run.signal("go", {"n": 3})
    assert await run.finish() == [3, 7, "3"]
    assert run.slept < HOUR


async def test_finished_steps_are_compensated():
    run = Inline(undone)
    with pytest.raises(WorkflowFailed, match="no luck"):
        await run.finish()
    assert DONE == ["made", "undone", "sorry: no luck"]
    assert run.states["fails"] == "failed"


async def test_a_workflow_of_workflows():
    assert (await Inline(outer).finish())["found"] == [0, 2]


async def test_a_wait_that_cannot_end_is_reported():
    own = App()

    @own.workflow
    def waits():
        step.signal("never")

    with pytest.raises(Waits, match="waits"):
        await Inline(waits).finish()


def test_it_runs_without_an_event_loop_again_and_again():
    assert [asyncio.run(Inline(branched).finish()) for _ in range(2)] == [{"yes": None, "no": "no"}] * 2
    before = app._client
    with server(app) as horae:
        execution = note.sync.submit("a")
        assert horae.sync.finish(execution).result == "a"
        assert horae.sync.run("rests").result == "rested"
        assert asyncio.run(horae.run(mapped, count=1)).result["found"] == [0]
        assert horae.client.sync.jobs.get("mapped").name == "mapped"
    assert app._client is before


async def test_functions_submit_and_get_secrets():
    own = App()

    @own.job(secrets=["token"])
    async def calls(ctx: Context) -> int:
        await ctx.submit("other", {})
        return len(ctx.secret("token"))

    @own.job
    def other() -> str:
        return "called"

    with server(own, secrets={"token": "12345"}) as horae:
        assert (await horae.run(calls)).result == 5
        [child] = await horae.client.jobs.executions("other")
        assert (await horae.finish(child.id)).result == "called"


def test_a_server_that_cannot_start_stops_and_says_why():
    with pytest.raises(BadInput, match="bad name"), server(App(), secrets={"bad name!": "x"}):
        raise AssertionError("It has started.")
    assert "horae-testing" not in [thread.name for thread in threading.enumerate()]


def test_schedules_fire_on_request():
    own = App()

    @own.job(schedule=every("10m"))
    def tick() -> None:
        DONE.append("tick")

    @own.job(durable=True)
    async def long(ctx: Context) -> None:
        await ctx.sleep("65m")

    with server(own, schedules=True) as horae:
        horae.sync.run(long)
        for execution in horae.client.sync.jobs.executions("tick"):
            horae.sync.finish(execution)
    assert len(DONE) == 6
