"""Measurement of views in a browser without a cache, one after the other, and of their usage while they are open."""

import asyncio
import time
from collections.abc import Iterable

import psutil
from msgspec import Struct
from playwright.async_api import Browser, Page, StorageState

from tools.page.demo import READY, Demo

# By name: the path, with names of the demo's objects in braces.
VIEWS = {
    "overview": "/",
    "jobs": "/ui/jobs",
    "job": "/ui/jobs/demo-shop",
    "job, statistics": "/ui/jobs/demo-shop?tab=statistics",
    "job, edit": "/ui/jobs/demo-shop/edit",
    "executions": "/ui/executions",
    "execution": "/ui/executions/{import}",
    "execution, failed": "/ui/executions/{fails}",
    "workflow": "/ui/executions/{pipeline}",
    "schedule": "/ui/schedule",
    "schedule, month": "/ui/schedule?view=month",
    "events": "/ui/events",
    "queues": "/ui/queues",
    "queue": "/ui/queues/default",
    "workers": "/ui/workers",
    "worker": "/ui/workers/{worker}",
    "dead letters": "/ui/dead-letters",
    "alerts": "/ui/alerts",
    "audit log": "/ui/audit",
    "settings": "/ui/settings",
}
# The time at which the view shows its content, by the page's own clock.
THERE = f"""() => new Promise((done) => {{
    const look = () => (({READY})() ? done(performance.now()) : requestAnimationFrame(look));
    look();
}})"""
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
SETTLES = 2.0  # seconds until a view has finished its initial work


class PageLoad(Struct, frozen=True):
    """The opening of a view: ms to the first paint and to its content, and transferred bytes."""

    painted: float
    there: float
    transferred: int


class Cost(Struct, frozen=True):
    """Shares of a core while a view is open."""

    browser: float
    server: float

    def beyond(self, idle: float) -> "Cost":
        """Return the same cost without the server's usage when no view is open."""
        return Cost(self.browser, max(0.0, self.server - idle))


class Meter:
    """The processor usage of processes since the meter was created."""

    def __init__(self, processes: Iterable[psutil.Process]) -> None:
        self._processes = list(processes)
        self._began, self._used = time.monotonic(), self._total()

    def _total(self) -> float:
        used = 0.0
        for process in self._processes:
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            used += times.user + times.system
        return used

    def share(self) -> float:
        return (self._total() - self._used) / (time.monotonic() - self._began)


def server(demo: Demo) -> list[psutil.Process]:
    return [psutil.Process(demo.process.pid)]


def browsers() -> list[psutil.Process]:
    """Return all processes of the browser that this process has started."""
    return [one for one in psutil.Process().children(recursive=True) if "chrom" in one.name()]


async def idle(demo: Demo, seconds: float) -> float:
    """Return the server's usage without any page."""
    meter = Meter(server(demo))
    await asyncio.sleep(seconds)
    return meter.share()


async def look(browser: Browser, state: StorageState, url: str) -> tuple[Page, PageLoad]:
    """Open a view in a browser without a cache."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900}, storage_state=state)
    page = await context.new_page()
    wire = await context.new_cdp_session(page)
    sizes: list[int] = []
    wire.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
    await wire.send("Network.enable")
    await page.goto(url)
    there = await page.evaluate(THERE)
    painted = await page.evaluate(PAINTED)
    return page, PageLoad(painted or there, there, sum(sizes))


async def cost(demo: Demo, seconds: float) -> Cost:
    """Return the usage while a view is open, including all usage of the server."""
    await asyncio.sleep(SETTLES)
    browser, served = Meter(browsers()), Meter(server(demo))
    await asyncio.sleep(seconds)
    return Cost(browser.share(), served.share())
