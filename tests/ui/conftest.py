"""Real browsers with a real server: `site` is `horae up` in a separate process, `page` a signed-in browser.

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
from tests.waiting import PATIENCE, eventually, eventually_sync

if TYPE_CHECKING:
    from playwright.async_api import Browser, ConsoleMessage, Page

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
SERIOUS = ("serious", "critical")
ALSO = ("page-has-heading-one",)
LOOK = """again => axe.run(document, {
  resultTypes: ["violations"],
  ...(again ? {runOnly: {type: "rule", values: ["color-contrast", "link-in-text-block", "scrollable-region-focusable"]}}
    : {rules: {"label-content-name-mismatch": {enabled: true}}}), // which axe calls an experiment
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
    """A server with its worker, and an administrator's client."""

    url: str
    fleet: Fleet

    def get(self, path: str, **params: Any) -> Any:
        return self.fleet.get(path, **params)

    def post(self, path: str, body: Any = None) -> Any:
        return self.fleet.post(path, body)


@pytest.fixture(scope="module")
def demo() -> bool:
    """Tell whether the demo's jobs exist; a module may override this."""
    return False


@pytest.fixture(scope="module")
def features() -> str:
    """Return the setting `features` of the server; a module may disable some."""
    return ""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, demo: bool, features: str) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    fleet = Fleet(folder, f"sqlite:///{folder}/horae.db")
    url = f"http://127.0.0.1:{(port := free_port())}"
    fleet.urls["up"] = url
    args = ["up", "--data", str(folder), "--port", str(port), *(["--demo"] if demo else [])]
    fleet.servers["up"] = Process(folder, "up", args, {"HORAE_FEATURES": features})
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
    """Open a signed-in, empty page; unexpected messages in its console fail the test."""
    context = await browser.new_context(viewport=LARGE)
    page = await context.new_page()
    page.set_default_timeout(15_000 * PATIENCE)
    complaints: list[str] = []
    forgiven: set[str] = set()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(told(said)) if said.type in ("error", "warning") else None)
    page.complaints, page.forgiven = complaints, forgiven  # type: ignore[attr-defined]
    code = site.post("/sign-in/codes")["code"]
    assert (await context.request.post(f"{site.url}/api/v1/sign-in", data={"code": code})).ok
    yield page
    await context.close()
    assert [said for said in complaints if not any(mark in said for mark in forgiven)] == []


def told(said: "ConsoleMessage") -> str:
    """Return a message with the address it is about: the browser reports an answer by its status only."""
    return f"{said.text} {said.location['url']}"


async def check(page: "Page") -> None:
    """Check with both sets of fonts that a page is accessible and that its content stays inside the visible area."""
    await page.locator("h1").first.wait_for()  # a page appears after the frame
    await page.mouse.move(0, 0)  # a pointer on a link underlines it
    await page.evaluate(AXE)
    for again, font in enumerate(FONTS):
        await page.evaluate(IN_FONT, font)
        found = await page.evaluate(LOOK, again)  # names and roles are the same in every font
        worst = [
            f"{font}: {one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
            for one in found["violations"]
            if one["impact"] in SERIOUS or one["id"] in ALSO
        ]
        assert worst == []
        assert await page.evaluate(TOO_WIDE) == []
    await page.evaluate(IN_FONT, "")


def forgive(page: "Page", told: int | str) -> None:
    """Expect a status, or words, in console messages, which may appear after the page has changed."""
    page.forgiven.add(f"status of {told}" if isinstance(told, int) else told)  # type: ignore[attr-defined]


async def refused(page: "Page") -> None:
    """Wait until the browser reports the expected refusal of a request."""
    forgive(page, "status of 4")
    complaints: list[str] = page.complaints  # type: ignore[attr-defined]
    await eventually(lambda: any("status of 4" in said for said in complaints))
    complaints[:] = [said for said in complaints if "status of 4" not in said]
