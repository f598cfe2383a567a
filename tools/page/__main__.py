"""`python -m tools.page`: measure every page, and write docs/RESULTS-pages.md; called by `tools/pages`."""

import argparse
import asyncio
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from bench.kit.results import machine
from bench.pages.document import commit_of_tree
from horae.env import system_env
from horae.model.base.instant import format_instant
from tools.page.demo import ROOT, Demo, chromium, sign_in
from tools.page.load import Load
from tools.page.measure import VIEWS, Cost, PageLoad, cost, idle, look
from tools.page.report import Circumstances, View, misses, text

PAGE = ROOT / "docs" / "RESULTS-pages.md"
DEMO, LOAD = "demo", "load"


class PageMeasurements(Struct):
    """The results of a run: the views, the server's usage without them, and the rate of the load."""

    opened: dict[str, PageLoad] = {}
    costs: dict[str, dict[str, Cost]] = {}
    idle: dict[str, float] = {}  # by the activity beside
    rate: float = 0.0  # executions per second

    @property
    def views(self) -> list[View]:
        return [View(name, self.opened[name], costs) for name, costs in self.costs.items()]


async def measure(names: Sequence[str], seconds: float, rate: int) -> PageMeasurements:
    """Measure views beside the idle demo, and beside a load."""
    found = PageMeasurements()
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(folder)
        try:
            paths = {name: VIEWS[name].format(**ids) for ids in [await demo.lived()] for name in names}
            await watch(demo, found, DEMO, paths, seconds)
            load = Load(demo, rate)
            began, before = time.monotonic(), load.done
            await watch(demo, found, LOAD, paths, seconds)
            found.rate = (load.done - before) / (time.monotonic() - began)
            load.close()
        finally:
            demo.close()
    return found


async def watch(demo: Demo, found: PageMeasurements, beside: str, paths: Mapping[str, str], seconds: float) -> None:
    """Open every view in a browser without a cache, and measure it for a while."""
    await asyncio.sleep(5)  # until the load is steady
    before = await idle(demo, seconds)
    spent: dict[str, Cost] = {}
    async with chromium() as browser:
        first = await browser.new_page()
        await sign_in(first, demo)
        state = await first.context.storage_state()
        await first.context.close()
        for name, path in paths.items():
            page, found.opened[name] = await look(browser, state, demo.url + path)
            spent[name] = await cost(demo, seconds)
            await page.context.close()
            print(f"{name}, beside the {beside}: {spent[name].browser:.1%}", file=sys.stderr)
    after = await idle(demo, seconds)
    found.idle[beside] = (before + after) / 2
    for at, (name, one) in enumerate(spent.items(), 1):
        alone = before + (after - before) * at / (len(spent) + 1)  # usage grows with the number of stored rows
        found.costs.setdefault(name, {})[beside] = one.beyond(alone)


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(prog="tools/pages", description=__doc__)
    options.add_argument("--seconds", type=float, default=10, help="how long each page is measured")
    options.add_argument("--rate", type=int, default=100, help="executions per second of the load")
    options.add_argument("--only", action="append", choices=VIEWS, help="only this page; then no file is written")
    given = options.parse_args(arguments)
    found = asyncio.run(measure(given.only or list(VIEWS), given.seconds, given.rate))
    here = machine()
    around = Circumstances(
        command=shlex.join(["tools/pages", *(sys.argv[1:] if arguments is None else arguments)]),
        commit=commit_of_tree(), date=format_instant(system_env().now()), seconds=given.seconds, idle=found.idle,
        rate=found.rate,
        machine=f"{here['cpu']}, {here['cores']} cores, {here['memoryGb']} GB, load {here['loadBefore']} before",
    )  # fmt: skip
    page = text(found.views, around)
    if given.only:
        print(page)
    else:
        PAGE.write_text(page)
    return 1 if misses(found.views) else 0


if __name__ == "__main__":
    sys.exit(main())
