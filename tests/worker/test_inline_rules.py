"""The rules of a job in the inline runner, compared with a real server and worker."""

import asyncio
import threading
from typing import Any

import pytest

from horae import App, Cancelled, Client, Context, EmbeddedTransport, GiveUp, Retry
from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.server.app import Application
from horae.testing import Crash, Inline
from horae.worker.gateway_transport import GatewayTransport
from horae.worker.settings import WorkerSettings
from horae.worker.worker import WorkerRuntime

KEY = "k" * 40
MINUTE, HOUR = 60, 3600
CALLS: list[str] = []
RETRIES = {"retries": 3, "retry": {"delay": "1ms"}}


class Odd(Exception):
    """An exception of the test."""


def raising(*errors: BaseException):
    """Return a function that raises these exceptions in turn, the last one always."""

    def body() -> None:
        CALLS.append("")
        raise errors[min(len(CALLS), len(errors)) - 1]

    return body


async def unserializable() -> Any:
    CALLS.append("")
    return object()


async def slow() -> None:
    CALLS.append("")
    await asyncio.Event().wait()


async def deaf() -> str:
    CALLS.append("")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "done all the same"
    return "done"


def sleepy() -> str:
    CALLS.append("")
    threading.Event().wait(2)
    return "late"


async def naps(ctx: Context) -> None:
    CALLS.append("")
    try:
        for _ in range(60):
            await ctx.sleep("900ms")
    except Exception:
        CALLS.append("handled")


def only_one_more(failures: int, error: BaseException) -> bool | None:
    return None if failures < 2 else False


RULES: list[tuple[str, dict[str, Any], Any]] = [
    ("all fail", RETRIES, raising(ValueError("x"))),
    ("succeeds later", RETRIES, raising(OSError("x"), GiveUp("enough"))),
    ("give_up_on", {"retries": 3, "retry": {"delay": "1ms", "give_up_on": [ValueError]}}, raising(ValueError("x"))),
    ("retry_on another", {"retries": 3, "retry": {"delay": "1ms", "retry_on": [OSError]}}, raising(ValueError("x"))),
    (
        "retry_on parent",
        {"retries": 2, "retry": {"delay": "1ms", "retry_on": [OSError]}},
        raising(ConnectionError("x")),
    ),
    ("own error", {"retries": 2, "retry": {"delay": "1ms", "give_up_on": [Odd]}}, raising(OSError("x"), Odd("x"))),
    ("a function", {"retry": only_one_more, "retries": 5}, raising(ValueError("x"))),
    ("a budget", {"retries": 5, "retry": {"delay": "1ms", "budgets": {"error": 1}}}, raising(ValueError("x"))),
    ("at most once", {"delivery": "at-most-once"}, raising(ValueError("x"))),
    ("give up", RETRIES, raising(GiveUp("no"))),
    ("retry", {"retries": 2}, raising(Retry("again", after="1ms"))),
    ("exit", RETRIES, raising(SystemExit("x"))),
    ("cancels itself", RETRIES, raising(asyncio.CancelledError("x"))),
    ("no retries", {"retries": 0}, raising(ValueError("x"))),
    ("bad result", RETRIES, unserializable),
    ("timeout", {"retries": 1, "retry": {"delay": "1ms"}, "timeout": "50ms"}, slow),
    ("timeout budget", {"retries": 3, "timeout": "50ms", "retry": {"delay": "1ms", "budgets": {"timeout": 0}}}, slow),
    ("timeout, deaf", {"retries": 0, "timeout": "50ms"}, deaf),
    ("timeout, naps", {"retries": 0, "timeout": "100ms"}, naps),
    ("timeout, sync", {"retries": 0, "timeout": "50ms", "isolation": "thread"}, sleepy),
    ("total", {"retries": 9, "timeouts": {"total": "30m"}, "retry": {"delay": "1h"}}, raising(ValueError("x"))),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("options", "body"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
async def test_it_agrees_with_a_real_server(options, body):
    app = App()
    job = app.job("ruled", **options)(body)
    CALLS.clear()
    final = await really(app)
    real = len(CALLS), final.reason
    CALLS.clear()
    run = Inline(job)
    with pytest.raises((Exception, SystemExit, asyncio.CancelledError)) as told:
        await run.finish()
    assert (len(CALLS), run.reason) == real
    assert str(told.value) == final.error_message


async def test_a_function_gets_the_same_facts_as_from_a_real_server():
    def body(ctx: Context, x: int) -> list[Any]:
        deadline = None if ctx.deadline is None else round((ctx.deadline - ctx.scheduled_at).total_seconds() / MINUTE)
        return [ctx.job, ctx.attempt, ctx.priority, ctx.tags, ctx.params, deadline]

    for timed, minutes in (({}, None), ({"timeout": "1h"}, 60), ({"within": "2h"}, 120)):
        app = App()
        job = app.job("ruled", priority=7, tags={"team": "a"}, params={"x": 1}, isolation="thread", **timed)(body)
        run = await Inline(job).finish()
        assert run == (await really(app)).result == ["ruled", 1, 7, {"team": "a"}, {"x": 1}, minutes]


async def test_cancelling_the_test_ends_the_function():
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await Inline(App().job("ruled", retries=100)(slow)).finish()


async def really(app: App) -> Any:
    """Run the app's job to its end on a real server and worker."""
    node = await ServerNode.open(system_env(), "sqlite://")
    await node.start()
    await node.tenancy.keys.ensure_admin_key(KEY)
    client = Client(key=KEY, transport=EmbeddedTransport(Application(node)))
    await client.jobs.apply(app.definitions()[0])
    worker = WorkerRuntime(node.env, WorkerSettings(name="w", replace=False), GatewayTransport(node), app)
    working = asyncio.ensure_future(worker.run())
    try:
        return await client.executions.wait((await client.submit("ruled")).id, timeout=60)
    finally:
        worker.abort()
        await working
        await node.stop()


async def failing(body: Any, **options: Any) -> Inline:
    CALLS.clear()
    run = Inline(App().job("ruled", **options)(body))
    with pytest.raises(Exception):  # noqa: B017
        await run.finish()
    return run


async def test_delays_pass_on_its_clock():
    body = raising(ValueError("x"))
    assert (await failing(body, retries=3, retry={"delay": "10s", "factor": 2, "max": "30s"})).slept == 10 + 20 + 30
    assert (await failing(body, retries=3, retry=["1m", "5m"])).slept == 11 * MINUTE
    assert (await failing(raising(Retry("x", after="10m")), retries=2)).slept == 20 * MINUTE
    assert (await failing(body, retries=2, retry=lambda failures, error: f"{failures}h")).slept == 3 * HOUR
    assert (await failing(body, retries=0)).slept == 0


async def test_timeouts_pass_on_its_clock():
    async def body(ctx: Context) -> None:
        for _ in range(600):
            await ctx.sleep("1s")

    run = await failing(body, timeout="5m", retries=1, retry={"delay": "10m"})
    assert (run.slept, run.reason, run.failures) == (20 * MINUTE, "runTimeout", 2)
    assert [type(attempt.error).__name__ for attempt in run.attempts] == ["TimedOut", "TimedOut"]


async def test_waits_without_a_worker_count_for_all_attempts_together_only():
    async def body(ctx: Context) -> str:
        await ctx.sleep("2h")
        return "rested"

    assert await Inline(App().job("ruled", durable=True, timeout="1h")(body)).finish() == "rested"
    run = await failing(body, durable=True, timeouts={"total": "1h"}, retries=5)
    assert (run.slept, run.reason) == (HOUR, "totalTimeout")


async def test_a_function_that_should_run_once_is_not_tried_after_a_crash():
    async def body(ctx: Context) -> None:
        await ctx.step("a", int)

    run = Inline(App().job("ruled", delivery="at-most-once")(body), crash_after=1)
    with pytest.raises(Crash):
        await run.finish()
    assert run.reason == "delivery"


async def test_a_thread_that_outlives_its_attempt_changes_nothing():
    go, ended = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def body(ctx: Context) -> None:
        go.wait(60)
        try:
            ctx.sync.checkpoint("late")
        finally:
            loop.call_soon_threadsafe(ended.set)

    run = await failing(body, timeout="50ms")
    go.set()
    await ended.wait()
    assert run.kept == {}


async def test_a_function_that_stops_is_not_tried_again():
    def body() -> None:
        raise Cancelled

    run = Inline(App().job("ruled", retries=5)(body))
    with pytest.raises(Cancelled):
        await run.finish()
    assert len(run.attempts) == 1
