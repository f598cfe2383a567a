"""`python -m tools.page`: measure every page, and write docs/RESULTS-pages.md; `tools/pages` does."""

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
from tools.page.measure import VIEWS, Cost, Opened, cost, idle, look
from tools.page.report import Around, View, misses, text

PAGE = ROOT / "docs" / "RESULTS-pages.md"
DEMO, LOAD = "demo", "load"


class Measured(Struct):
    """What comes of a run: the views, what the server takes without them, and what the load did."""

    opened: dict[str, Opened] = {}
    costs: dict[str, dict[str, Cost]] = {}
    idle: dict[str, float] = {}  # by what goes on beside
    rate: float = 0.0  # executions a second

    @property
    def views(self) -> list[View]:
        return [View(name, self.opened[name], costs) for name, costs in self.costs.items()]


async def measure(names: Sequence[str], seconds: float, rate: int) -> Measured:
    """Measure views beside the demo alone, and beside a load."""
    found = Measured()
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


async def watch(demo: Demo, found: Measured, beside: str, paths: Mapping[str, str], seconds: float) -> None:
    """Open every view in a browser that has never seen it, and watch it for a while."""
    await asyncio.sleep(5)  # until it goes evenly
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
        alone = before + (after - before) * at / (len(spent) + 1)  # it grows with what is stored
        found.costs.setdefault(name, {})[beside] = one.beyond(alone)


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(prog="tools/pages", description=__doc__)
    options.add_argument("--seconds", type=float, default=10, help="how long each page is watched")
    options.add_argument("--rate", type=int, default=100, help="executions a second of the load")
    options.add_argument("--only", action="append", choices=VIEWS, help="only this page; then nothing is written")
    given = options.parse_args(arguments)
    found = asyncio.run(measure(given.only or list(VIEWS), given.seconds, given.rate))
    here = machine()
    around = Around(
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
