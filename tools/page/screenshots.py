"""Pictures for docs/screenshots, taken from a fresh demo in a real browser; called by `tools/screenshots`."""

import asyncio
import tempfile
from pathlib import Path

from playwright.async_api import Page

from tools.page.demo import READY, ROOT, Demo, chromium, sign_in

FOLDER = ROOT / "docs/screenshots"
SIZES = {"": (1440, 900), "tablet": (1024, 768), "phone": (390, 844)}
# name, path (with names of executions in braces), colour scheme, size
VIEWS = [
    ("overview", "/", "light", ""),
    ("overview-dark", "/", "dark", ""),
    ("overview-tablet", "/", "light", "tablet"),
    ("overview-phone", "/", "dark", "phone"),
    ("jobs", "/ui/jobs", "light", ""),
    ("jobs-phone", "/ui/jobs", "light", "phone"),
    ("job", "/ui/jobs/demo-shop", "light", ""),
    ("job-statistics-dark", "/ui/jobs/demo-shop?tab=statistics", "dark", ""),
    ("execution", "/ui/executions/{import}", "light", ""),
    ("failed-dark", "/ui/executions/{fails}", "dark", ""),
    ("failed-phone", "/ui/executions/{fails}", "light", "phone"),
    ("workflow", "/ui/executions/{pipeline}", "light", ""),
    ("workflow-dark", "/ui/executions/{pipeline}", "dark", ""),
    ("schedule", "/ui/schedule", "light", ""),
    ("dead-letters", "/ui/dead-letters", "light", ""),
    ("queue", "/ui/queues/default", "dark", ""),
    ("workers", "/ui/workers", "light", ""),
    ("alerts", "/ui/alerts?tab=rules", "light", ""),
    ("audit-dark", "/ui/audit", "dark", ""),
]


async def main() -> None:
    """Start a demo, and take all pictures of it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(folder)
        try:
            await take(demo, await demo.lived())
        finally:
            demo.close()


async def take(demo: Demo, ids: dict[str, str]) -> None:
    async with chromium() as browser:
        page = await browser.new_page()
        await sign_in(page, demo)
        for name, path, look, size in VIEWS:
            width, height = SIZES[size]
            await page.set_viewport_size({"width": width, "height": height})
            await page.emulate_media(color_scheme=look, reduced_motion="reduce")  # type: ignore[arg-type]
            await shoot(page, demo.url + path.format(**ids), FOLDER / f"{name}.png")


async def shoot(page: Page, url: str, file: Path) -> None:
    await page.goto(url)
    await page.wait_for_function(READY)
    await page.wait_for_timeout(700)  # charts are drawn in the next frames
    await page.screenshot(path=str(file))


if __name__ == "__main__":
    asyncio.run(main())
