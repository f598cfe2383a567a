"""`python -m bench start`: from an empty folder to the first finished execution."""

import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.kit.command import Steps, bench, repeats_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from horae.env import Env

_UP = re.compile(r"is up at (?P<url>http://\S+)")


@bench("python -m bench start", "python -m bench start --repeats 20")
@repeats_option(5)
async def start(repeats: int) -> "Sequence[Result]":
    """Cold start of `horae up` to the first execution finished.

    `horae up --app` is started in an empty folder: it creates its store and its key, registers the app's jobs and
    starts serving. As soon as it prints that, one execution is submitted over HTTP and followed until it has succeeded.
    Times count from the start of the process.
    """
    from bench.kit.results import machine, measured
    from horae.env import system_env

    env = system_env()
    served, finished = list[float](), list[float]()
    with Steps(repeats) as steps:
        for _ in range(repeats):
            steps.begin("horae up")
            ready, done = await _once(env)
            served.append(ready)
            finished.append(done)
            steps.done()
    settings = {"repeats": repeats, **machine()}
    return [
        measured("start", "horae up", "serves", "s", served, settings),
        measured("start", "horae up", "first execution finished", "s", finished, settings),
    ]


async def _once(env: "Env") -> tuple[float, float]:
    """Return the seconds until it serves, and until an execution has finished."""
    from bench.kit.stage import APP, Process, until
    from bench.kit.wire import build, connected
    from horae.client.local import read_key

    with tempfile.TemporaryDirectory(prefix="horae-bench-") as name:
        begun = time.perf_counter()
        up = Process(env, Path(name), "up", "--data", name, "--port", "0", "--app", APP)
        try:
            url = (await up.said(_UP)).removeprefix("is up at ")
            ready = time.perf_counter() - begun
            key = read_key(Path(name) / "admin.key")
            async with connected(url, 1) as client:
                submission = build(url, key, "POST", "/api/v1/executions", b'{"job":"bench-stamp"}')
                execution_id = msgspec.json.decode(await client.ask(submission))["executionId"]
                look = build(url, key, "GET", f"/api/v1/executions/{execution_id}")

                async def has_ended() -> bool:
                    return bool(msgspec.json.decode(await client.ask(look))["status"] == "success")

                await until(env, has_ended, "the first execution", 30.0)
                return ready, time.perf_counter() - begun
        finally:
            up.stop()
