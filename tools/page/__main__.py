"""`python -m tools.page`: measure every page, and write docs/RESULTS-pages.md; `tools/pages` does."""

import argparse
import asyncio
import shlex
import sys
import tempfile
from collections.abc import Sequence

from horae.bench.document import commit_of_tree
from horae.bench.results import machine
from horae.env import system_env
from horae.model.instant import format_instant
from tools.page.demo import ROOT, Demo, chromium, sign_in
from tools.page.load import Load
from tools.page.measure import VIEWS, Cost, Opened, cost, idle, look
from tools.page.report import Around, View, misses, text

PAGE = ROOT / "docs" / "RESULTS-pages.md"
DEMO, LOAD = "demo", "load"


async def measure(names: Sequence[str], seconds: float, rate: int) -> tuple[list[View], dict[str, float], float]:
    """The views, what the server takes without them, and how many executions a second were done under load."""
    opened: dict[str, Opened] = {}
    costs: dict[str, dict[str, Cost]] = {name: {} for name in names}
    at_rest: dict[str, float] = {}
    done = 0.0
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(folder)
        try:
            ids = await demo.lived()
            for beside in (DEMO, LOAD):
                load = Load(demo, rate) if beside == LOAD else None
                await asyncio.sleep(5)
                at_rest[beside] = await idle(demo, 2 * seconds)
                began, before = system_env().now(), load.done if load else 0
                for name in names:
                    opened[name], costs[name][beside] = await one(
                        demo, VIEWS[name].format(**ids), at_rest[beside], seconds
                    )
                if load is not None:
                    done = (load.done - before) * 1_000_000 / (system_env().now() - began)
                    load.close()
        finally:
            demo.close()
    return [View(name, opened[name], costs[name]) for name in names], at_rest, done


async def one(demo: Demo, path: str, beside: float, seconds: float) -> tuple[Opened, Cost]:
    """Open one view in a browser of its own, and watch it."""
    async with chromium() as browser:
        first = await browser.new_page()
        await sign_in(first, demo)
        state = await first.context.storage_state()
        await first.context.close()
        page, came = await look(browser, state, demo.url + path)
        return came, await cost(demo, page, beside, seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(prog="tools/pages", description=__doc__)
    options.add_argument("--seconds", type=float, default=20, help="how long each page is watched")
    options.add_argument("--rate", type=int, default=100, help="executions a second of the load")
    options.add_argument("--only", action="append", choices=VIEWS, help="only this page; then nothing is written")
    given = options.parse_args(arguments)
    views, at_rest, rate = asyncio.run(measure(given.only or list(VIEWS), given.seconds, given.rate))
    here = machine()
    around = Around(
        command=shlex.join(["tools/pages", *(sys.argv[1:] if arguments is None else arguments)]),
        commit=commit_of_tree(), date=format_instant(system_env().now()), seconds=given.seconds, idle=at_rest,
        rate=rate,
        machine=f"{here['cpu']}, {here['cores']} cores, {here['memoryGb']} GB, load {here['loadBefore']} before",
    )  # fmt: skip
    page = text(views, around)
    if given.only:
        print(page)
    else:
        PAGE.write_text(page)
    return 1 if misses(views) else 0


if __name__ == "__main__":
    sys.exit(main())
