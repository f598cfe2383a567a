"""Real browsers at a real server: `site` is `horae up` in a process of its own, `page` a browser that has signed in.

One server and one browser serve all tests of a module, and share its event loop.
"""

from collections.abc import AsyncIterator, Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from msgspec import Struct

from tests.acceptance.fleet import Fleet, Process, free_port
from tests.conftest import BROWSER_FLAGS
from tests.waiting import PATIENCE, eventually_sync

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
SERIOUS = ("serious", "critical")
ALSO = ("page-has-heading-one",)
LOOK = """() => axe.run(document, {
  resultTypes: ["violations"],
  rules: {"label-content-name-mismatch": {enabled: true}}, // which axe calls an experiment
})"""
FONTS = ("DejaVu Sans", "Noto Sans")  # the wider and the narrower one; tools/browser installs both
IN_FONT = """font => {
  const sheet = new CSSStyleSheet();
  const own = "body *:not(code, pre, .mono, .log-line, .log-line *)";
  sheet.replaceSync(font && `${own} { font-family: "${font}" !important; }`);
  document.adoptedStyleSheets = [sheet];
}"""
TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll("dialog[open]")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => `${one.tagName} ${one.className}: ${one.scrollWidth} > ${one.clientWidth}`)"""
LARGE = {"width": 1440, "height": 900}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


class Site(Struct):
    """A server with its worker, and a client that is its administrator's."""

    url: str
    fleet: Fleet

    def get(self, path: str, **params: Any) -> Any:
        return self.fleet.get(path, **params)

    def post(self, path: str, body: Any = None) -> Any:
        return self.fleet.post(path, body)


@pytest.fixture(scope="module")
def demo() -> bool:
    """Whether the demo's jobs are there; a module may say so."""
    return False


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, demo: bool) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    fleet = Fleet(folder, f"sqlite:///{folder}/horae.db")
    url = f"http://127.0.0.1:{(port := free_port())}"
    fleet.urls["up"] = url
    args = ["up", "--data", str(folder), "--port", str(port), *(["--demo"] if demo else [])]
    fleet.servers["up"] = Process(folder, "up", args, {})
    try:
        eventually_sync(lambda: fleet.is_ready(url) and fleet.get("/workers")["items"], within=30)
        yield Site(url, fleet)
    finally:
        fleet.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(chromium: str) -> AsyncIterator["Browser"]:
    from playwright.async_api import async_playwright, expect

    expect.set_options(timeout=5_000 * PATIENCE)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=BROWSER_FLAGS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: "Browser", site: Site) -> AsyncIterator["Page"]:
    """A signed-in page; whatever its console complains of fails the test."""
    context = await browser.new_context(viewport=LARGE)
    page = await context.new_page()
    page.set_default_timeout(15_000 * PATIENCE)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.complaints = complaints  # type: ignore[attr-defined]
    await page.goto(f"{site.url}/#code={site.post('/sign-in/codes')['code']}")
    await page.wait_for_selector(".rail")
    yield page
    await context.close()
    assert complaints == []


async def check(page: "Page") -> None:
    """Check with both sets of fonts that a page is accessible and that nothing of it lies outside of what is seen."""
    await page.mouse.move(0, 0)  # a pointer on a link underlines it
    await page.evaluate(AXE)
    for font in FONTS:
        await page.evaluate(IN_FONT, font)
        found = await page.evaluate(LOOK)
        worst = [
            f"{font}: {one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
            for one in found["violations"]
            if one["impact"] in SERIOUS or one["id"] in ALSO
        ]
        assert worst == []
        assert await page.evaluate(TOO_WIDE) == []
    await page.evaluate(IN_FONT, "")


def forgive(page: "Page", status: int) -> None:
    """The browser itself tells of an answer that the page has dealt with."""
    mark = f"status of {status}"
    page.complaints[:] = [said for said in page.complaints if mark not in said]  # type: ignore[attr-defined]
