"""The measurements of `horae bench`, and the jobs that its worker runs."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from horae import private
from horae.client.app import App
from horae.client.client import Client
from horae.env import Env, system_env
from horae.errors import BadInput, HoraeError
from horae.store.checkup import schema_version
from horae.store.open import open_store_driver

JOBS = f"{__name__}:app"
SERVING = re.compile(r"https?://127\.0\.0\.1:\d+")
WARM_UP = 1_000  # executions before any measurement
START, PATIENCE, STOP = 60.0, 900.0, 10.0  # seconds to wait: for the server, for executions, for a process to end
LOOK, QUIET = 0.01, 0.05  # seconds between checks, and before each timed pick-up

app = App("bench")


@app.job("bench-noop")
def noop(i: int) -> int:
    """Return the parameter."""
    return i


@app.job("bench-stamp")
def stamp() -> float:
    """Return the time when this function starts, by the clock that all processes of a machine share."""
    return system_env().clock.monotonic()


class BenchProcess(Struct, frozen=True):
    """A Horae command that runs beside this process, and the file with its output."""

    popen: subprocess.Popen[bytes]
    log: Path

    def check(self) -> str:
        """Return the output so far; raise an error with the output if the process has ended."""
        output = self.log.read_text(errors="replace")
        if self.popen.poll() is not None:
            raise HoraeError(f"A process of the measurement ended with {self.popen.returncode}:\n{output[-2000:]}")
        return output


async def measure(env: Env, store: str | None, executions: int, samples: int) -> dict[str, float]:
    """Start a server and a worker on a store, measure them, and stop them."""
    if store is not None:
        store = _absolute(store)
        await _check_empty(env, store)
    with tempfile.TemporaryDirectory(prefix="horae-bench-") as name, _ended_by_sigterm(), ExitStack() as running:
        folder, key = Path(name), f"bench-{env.new_id().hex}{env.new_id().hex}"
        url = store or f"sqlite:///{name}/horae.db"
        server = running.enter_context(_process(folder, key, "server", "--store", url, "--data", name, "--port", "0"))
        await _until(env, lambda: _serves(server), "the server to start", START)
        found = SERVING.search(server.check())
        assert found is not None
        worker = running.enter_context(_process(folder, key, "worker", "--server", found[0], "--app", JOBS))
        async with Client(found[0], key, env=env) as client:
            return await _figures(env, client, (server, worker), executions, samples)


def _absolute(store: str) -> str:
    """Return a store's URL with the absolute path of its file, because the processes start in another folder."""
    path = store.removeprefix("sqlite:///")
    return store if path in (store, "", ":memory:") else f"sqlite:///{Path(path).absolute()}"


async def _check_empty(env: Env, store: str) -> None:
    """Refuse a store that has tables of Horae, because the measurement would fill it."""
    driver = await open_store_driver(store, env, "(horae bench)")
    try:
        if await schema_version(driver) is not None:
            raise BadInput("That store contains tables of Horae.", "Name an empty database.", field="store")
    finally:
        await driver.close()


@contextmanager
def _process(folder: Path, key: str, *arguments: str) -> Iterator[BenchProcess]:
    log = folder / f"{arguments[0]}.log"
    usual = {name: value for name, value in os.environ.items() if not name.startswith("HORAE_")}
    with os.fdopen(private.create_file(log), "wb") as file:
        popen = subprocess.Popen(
            [sys.executable, "-m", "horae.cli.main", *arguments],
            cwd=folder, env={**usual, "HORAE_ADMIN_KEY": key, "HORAE_KEY": key}, stdin=subprocess.DEVNULL,
            stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield BenchProcess(popen, log)
    finally:
        popen.terminate()
        try:
            popen.wait(STOP)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that the started processes end, too."""
    loop, task, taken = asyncio.get_running_loop(), asyncio.current_task(), []

    def stop() -> None:
        taken.append(signal.SIGTERM)
        if task is not None:
            task.cancel()

    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        yield
    except asyncio.CancelledError:
        if taken:
            raise KeyboardInterrupt from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _until(env: Env, check: Callable[[], Awaitable[bool]], what: str, within: float) -> None:
    ends_at = env.clock.monotonic() + within
    while not await check():
        if env.clock.monotonic() > ends_at:
            raise HoraeError(
                f"Timed out after {within:g} s, waiting for {what}.", "Is this machine busy with other work?"
            )
        await env.clock.sleep(LOOK)


async def _serves(server: BenchProcess) -> bool:
    return SERVING.search(server.check()) is not None


async def _figures(
    env: Env, client: Client, processes: Sequence[BenchProcess], executions: int, samples: int
) -> dict[str, float]:
    await client.apply(jobs=app.definitions())
    await _run(env, client, processes, min(WARM_UP, executions))
    submissions, ended = await _run(env, client, processes, executions)
    waits = sorted([await _pick_up(env, client) for _ in range(samples)])
    return {
        "submissions": round(submissions, 1),
        "executions": round(ended, 1),
        "pickUpP50": round(_percentile(waits, 0.5) * 1000, 3),
        "pickUpP99": round(_percentile(waits, 0.99) * 1000, 3),
    }


async def _run(env: Env, client: Client, processes: Sequence[BenchProcess], count: int) -> tuple[float, float]:
    """Run `count` executions; return submissions and executions per second."""

    async def has_ended() -> bool:
        for process in processes:
            process.check()
        return not any([await client.executions.list(status=status, limit=1) for status in ("pending", "running")])

    started = env.clock.monotonic()
    accepted = await client.submit_many("bench-noop", ({"i": i} for i in range(count)))
    submitted = env.clock.monotonic() - started
    if refused := [item.error for item in accepted if item.execution_id is None]:
        raise HoraeError(f"{len(refused)} of {count} submissions were refused: {refused[0]}")
    await _until(env, has_ended, "all executions to end", PATIENCE)
    took = env.clock.monotonic() - started
    if failed := await client.executions.list(status="failed", limit=1):
        raise HoraeError(f"Execution {failed[0].id} failed.")
    return count / submitted, count / took


async def _pick_up(env: Env, client: Client) -> float:
    """Return the seconds from a submission to the first line of its function."""
    await env.clock.sleep(QUIET)
    sent = env.clock.monotonic()
    execution = await client.executions.wait((await client.submit("bench-stamp")).id, timeout=PATIENCE)
    if execution.status != "success":
        raise HoraeError(f"A timed execution ended as {execution.status}.")
    began: float = await client.executions.result(execution)
    return began - sent


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
