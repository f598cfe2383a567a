"""Jobs for tests, at the top level of a module, so that child processes find them too."""

import asyncio
import ctypes
import logging
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from horae.client.app import App
from horae.client.transport.calls import current_trace
from horae.model.executions.job_exceptions import Cancelled, GiveUp, Retry
from horae.worker.code.context import Context, current

app = App()
forever = threading.Event()
logging.getLogger("app").setLevel(logging.INFO)


@dataclass
class Point:
    x: int
    y: int = 0


@app.job()
def add(a: int, b: int = 2) -> int:
    return a + b


@app.job()
async def add_async(a: int, b: int = 2) -> int:
    return a + b


@app.job()
def typed(day: date, point: Point) -> dict[str, object]:
    return {"day": day, "x": point.x}


@app.job()
def fail(kind: str) -> None:
    if kind == "retry":
        raise Retry("later", after="10m")
    if kind == "give up":
        raise GiveUp("bad input")
    if kind == "cancel":
        raise Cancelled
    if kind == "exit":
        sys.exit(3)
    if kind == "surrogate":
        raise ValueError("\ud800\0")
    raise KeyError(kind)


@app.job()
async def fail_async(kind: str) -> None:
    fail(kind)


def rule(failures: int, error: BaseException) -> object:
    if isinstance(error, KeyError):
        return failures * 60
    if isinstance(error, ValueError):
        return False
    return None


@app.job(retry=rule)
def ruled(kind: str) -> None:
    raise {"key": KeyError, "value": ValueError, "other": OSError}[kind](kind)


@app.job()
def unencodable() -> object:
    return object()


@app.job()
def large(size: int) -> str:
    return "x" * size


@app.job()
def talk(ctx, folder: str = "") -> dict[str, object]:
    ctx.progress(50, "half")
    ctx.log("hello")
    ctx.log.warning("%s left", 3)
    logging.getLogger("app").info("through logging")
    print("printed")
    return {
        "id": str(ctx.execution_id),
        "job": ctx.job,
        "attempt": ctx.attempt,
        "token": ctx.token,
        "failures": ctx.failures,
        "params": ctx.params,
        "same": current() is ctx,
        "deadline": ctx.deadline is not None,
        "tags": dict(ctx.tags),
    }


@app.job()
async def talk_async(ctx, folder: str = "") -> dict[str, object]:
    return talk(ctx, folder)


@app.job()
def wait(ctx, folder: str, name: str = "up") -> str:
    """Wait until asked to stop, with regular checks."""
    Path(folder, f"{name}.pid").write_text(str(os.getpid()))
    while not ctx.cancelled:
        forever.wait(0.02)
    ctx.raise_if_cancelled()
    return "never"


@app.job()
def stuck(folder: str, seconds: float = 60.0) -> str:
    """Wait without checks."""
    Path(folder, "stuck.pid").write_text(str(os.getpid()))
    forever.wait(seconds)
    return "late"


@app.job()
async def sleep(folder: str, name: str = "up") -> None:
    Path(folder, f"{name}.pid").write_text(str(os.getpid()))
    try:
        await asyncio.Event().wait()
    finally:
        Path(folder, f"{name}.cleaned").touch()


@app.job()
async def deaf(folder: str) -> None:
    """Swallow every cancellation until a file says so."""
    Path(folder, "deaf.pid").touch()
    while not Path(folder, "go").exists():
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.02)
        except (TimeoutError, asyncio.CancelledError):
            continue


@app.job()
def crash(how: str) -> None:
    if how == "segfault":
        ctypes.string_at(0)
    os._exit(7)


@app.job()
def breed(folder: str) -> None:
    """Start a grandchild that ignores SIGTERM, and wait for ever."""
    code = (
        "import os, signal, sys, threading; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "open(sys.argv[1], 'w').write(str(os.getpid())); threading.Event().wait()"
    )
    subprocess.Popen([sys.executable, "-c", code, f"{folder}/grandchild.pid"], start_new_session=True)
    Path(folder, "main.pid").write_text(str(os.getpid()))
    forever.wait()


@app.job()
def clean(folder: str) -> None:
    Path(folder, "main.pid").write_text(str(os.getpid()))
    try:
        forever.wait()
    finally:
        Path(folder, "cleaned").touch()


@app.job()
async def children(ctx, fails: bool = False) -> list[str]:
    first = await ctx.submit("other", {"n": 1}, delay="1s", priority=7)
    more = await ctx.submit_many("other", [{"n": 2}, {"n": 3}])
    if fails and ctx.attempt == 1:
        raise OSError("once more")
    return [child.id for child in (first, *more)]


@app.job()
async def children_in_envelopes(ctx) -> None:
    await ctx.submit_many("other", [{"params": {"n": 2}, "tags": {"a": "b"}}])


@app.job()
async def child_by_keyword(ctx) -> None:
    await ctx.submit("other", n=1)


@app.job()
def says_nothing() -> None:
    raise AssertionError


@app.job()
def children_sync(ctx, fails: bool = False) -> list[str]:
    first = ctx.sync.submit(add, {"a": 1})
    if fails and ctx.attempt == 1:
        raise OSError("once more")
    return [first.id]


@app.job()
async def steps(ctx, folder: str) -> list[object]:
    def count(name: str) -> int:
        file = Path(folder, name)
        file.write_text(file.read_text() + "." if file.exists() else ".")
        return len(file.read_text())

    async def later() -> str:
        return "b"

    first = await ctx.step("first", count, "first")
    second = await ctx.step("second", later)
    if ctx.attempt == 1:
        raise OSError("once more")
    return [first, second]


@app.job()
def steps_sync(ctx, folder: str) -> object:
    got = ctx.sync.step("only", lambda: {"day": date(2026, 11, 15), "n": ctx.attempt})
    if ctx.attempt == 1:
        raise OSError("once more")
    return got


@app.job()
def where() -> int:
    return os.getpid()


@app.job()
def thread_name() -> str:
    return threading.current_thread().name


@app.job()
def echo(value: str = "") -> str:
    return value


@app.job()
def beat(times: int, ctx: Context) -> int:
    """Send heartbeats for a while, then be silent until stopped."""
    for _ in range(times):
        ctx.heartbeat()
        forever.wait(0.1)
    forever.wait()
    return times


@app.job()
def leave(ctx, folder: str) -> list[object]:
    """Leave bytes and a file behind."""
    path = Path(folder, "long.csv")
    path.write_text("a,b\n" * 100_000)
    return [ctx.sync.artifact("note.txt", b"hello").size, ctx.sync.artifact("tables/long.csv", path).type]


@app.job()
async def leave_async(ctx, folder: str) -> list[object]:
    path = Path(folder, "long.csv")
    path.write_text("a,b\n" * 100_000)
    return [(await ctx.artifact("note.txt", b"hello")).size, (await ctx.artifact("tables/long.csv", path)).type]


@app.job()
def much(n: int) -> str:
    return "x" * n


@app.job()
async def much_async(n: int) -> str:
    return "x" * n


def mark(folder: str, what: str) -> str:
    """Record an effect."""
    with Path(folder, "effects").open("a") as file:
        file.write(f"{what}\n")
    return what


@app.job(durable=True)
async def travels(ctx, folder: str) -> list[object]:
    """Use every durable operation once."""
    first = await ctx.step("book", mark, folder, "first")
    second = await ctx.step("book", mark, folder, "second")
    told = await ctx.wait_for("go")
    state = await ctx.restored({"n": 0})
    while state["n"] < 3:
        state = {"n": state["n"] + 1}
        await ctx.checkpoint(state)
        if state["n"] == 2 and ctx.failures == 0:
            raise OSError("once more")
    await ctx.sleep("20ms")
    both = await ctx.gather(ctx.step("left", mark, folder, "left"), ctx.step("right", mark, folder, "right"))
    return [first, second, told, state, both]


@app.job(durable=True)
def travels_sync(ctx, folder: str) -> list[object]:
    first = ctx.sync.step("book", mark, folder, "first")
    second = ctx.sync.step("book", mark, folder, "second")
    told = ctx.sync.wait_for("go")
    state = ctx.sync.restored({"n": 0})
    while state["n"] < 3:
        state = {"n": state["n"] + 1}
        ctx.sync.checkpoint(state)
        if state["n"] == 2 and ctx.failures == 0:
            raise OSError("once more")
    ctx.sync.sleep("20ms")
    both = ctx.sync.gather(ctx.step("left", mark, folder, "left"), ctx.step("right", mark, folder, "right"))
    return [first, second, told, state, both]


@app.job(durable=True)
async def naps(ctx, seconds: float) -> int:
    await ctx.sleep(seconds)
    return ctx.attempt


@app.job(durable=True)
async def forgets_to_await(ctx: Context) -> int:
    ctx.step("charge", len, "abc")
    return 1


@app.job(durable=True)
def forgets_sync(ctx: Context) -> int:
    ctx.step("charge", len, "abc")
    return 1


@app.job()
async def naps_awake(ctx, seconds: float) -> int:
    await ctx.sleep(seconds)
    return ctx.attempt


@app.job(durable=True)
async def many_steps(ctx, count: int) -> int:
    got = await ctx.gather(*(ctx.step(f"s{i}", int, i) for i in range(count)))
    return sum(got)


@app.job(durable=True)
async def group(ctx) -> str:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_nap(ctx))
        tasks.create_task(_wait(ctx))
    return "done"


async def _nap(ctx) -> None:
    await ctx.sleep("1h")


async def _wait(ctx) -> None:
    await ctx.wait_for("never")


@app.job()
def traced(ctx: Context) -> list[str | None]:
    return _traces(ctx)


@app.job()
async def traced_async(ctx: Context) -> list[str | None]:
    await asyncio.sleep(0)
    return _traces(ctx)


def _traces(ctx: Context) -> list[str | None]:
    current = current_trace()
    return [current.parent, ctx.trace, current.state, ctx.trace_state]


@app.job
def environment() -> list[bool]:
    """Return whether a variable is set, and whether /proc shows it."""
    shown = Path("/proc/self/environ").read_bytes() if sys.platform == "linux" else b""
    return [os.environ.get("HORAE_KEY") == "hk_secret", b"hk_secret" in shown]
