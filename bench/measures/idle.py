"""`python -m bench idle`: the cost of an idle `horae up`."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.kit.command import Steps, bench, count_option

if TYPE_CHECKING:
    from bench.kit.results import Result

SETTLE = 3.0  # seconds between the start and the first measurement


@bench("python -m bench idle", "python -m bench idle --seconds 60 -o json")
@count_option("--seconds", 20, "How long it is measured.")
async def idle(seconds: int) -> "Sequence[Result]":
    """Processor time and memory of an idle `horae up`.

    `horae up` runs in an empty folder, without the demo's jobs. Its processor time, including child processes, is read
    before and after the given time; its memory at the end.
    """
    import tempfile

    from bench.kit.results import Result, machine
    from bench.kit.stage import Process
    from bench.kit.usage import cpu_seconds, rss_bytes
    from horae.env import system_env

    env = system_env()
    with tempfile.TemporaryDirectory(prefix="horae-bench-") as folder, Steps(seconds) as steps:
        steps.begin("idle")
        up = Process(env, Path(folder), "up", "--data", folder, "--port", "0")
        try:
            began = time.perf_counter()
            await up.said(re.compile(r"is up at"))
            ready = time.perf_counter() - began
            await env.clock.sleep(SETTLE)
            before, begun = cpu_seconds(up.pid), time.perf_counter()
            for _ in range(seconds):
                await env.clock.sleep(1.0)
                steps.done()
            up.check()
            share = (cpu_seconds(up.pid) - before) / (time.perf_counter() - begun)
            memory = rss_bytes(up.pid)
        finally:
            up.stop()
    settings = {"seconds": seconds, **machine()}
    figures = (("processor", share * 100, "% of a core"), ("memory", memory / 2**20, "MiB"), ("start", ready, "s"))
    return [
        Result(bench="idle", case="horae up", metric=metric, value=round(value, 3), unit=unit, settings=settings)
        for metric, value, unit in figures
    ]
