"""All stored texts of users are shown as text: no field of any page runs a script, or creates an element."""

import re

import pytest
from playwright.async_api import expect

from tests.ui.conftest import forgive
from tests.waiting import eventually_sync

CORPUS = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=2>",
    '"><svg onload=window.hacked=3>',
    "'-window.hacked=4-'",
    "</textarea></title></style><iframe srcdoc='<script>parent.hacked=5</script>'>",
    "javascript:window.hacked=6",
    "${window.hacked=7}{{window.hacked=8}}",
    "gnp.exe <b onmouseover=window.hacked=9>hover</b>",
    "[click](javascript:window.hacked=10) <a href='javascript:window.hacked=11'>x</a>",
)
EVIL = " ".join(CORPUS)
WRITTEN = EVIL.replace("${", "$${")  # where a definition would parse it as an expression
LINK = "\\x1b]8;;javascript:window.hacked=12\\x07link\\x1b]8;;\\x07"
FAILS = f"import sys; print({WRITTEN!r}); print('{LINK}'); sys.exit({WRITTEN!r})"
# Elements that only the corpus would create.
MADE = "iframe, img[src='x'], svg[onload], b[onmouseover], a[href^='javascript'], script:not([src])"


@pytest.fixture(scope="module")
def hostile(site):
    """Create one object of each kind, with hostile texts in all fields."""
    text = {"type": "string", "description": EVIL, "title": EVIL}
    job = {
        "name": "hostile", "description": EVIL, "command": ["python3", "-c", FAILS], "tags": {"tag": EVIL[:120]},
        "params": {"text": EVIL, EVIL[:60]: [EVIL]}, "schedule": {"every": "1h", "params": {"text": WRITTEN}},
        "schema": {"type": "object", "title": EVIL, "properties": {"text": text}},
    }  # fmt: skip
    site.post("/jobs", job)
    steps = [{"name": "ask", "approval": {"message": EVIL}}]
    made = site.fleet.request("POST", "/jobs", {"name": "flow", "description": EVIL, "workflow": {"steps": steps}})
    if made.status_code >= 300:
        steps = [{"name": "ask", "approval": {}}]
        site.post("/jobs", {"name": "flow", "description": EVIL, "workflow": {"steps": steps}})
    failed = site.post("/jobs/hostile/trigger", {"key": EVIL[:100], "tags": {"x": EVIL[:100]}})["executionId"]
    flow = site.post("/jobs/flow/trigger", {"params": {"p": EVIL}})["executionId"]
    site.post("/keys", {"name": EVIL[:128], "role": "viewer"})
    site.post("/queues/default/hold", {"for": "1s", "reason": EVIL[:256]})
    site.post("/events", {"name": "upload", "payload": {"text": EVIL}})
    site.fleet.request("PATCH", "/namespaces/default", {"description": EVIL})
    site.fleet.request("PATCH", "/jobs/hostile", {"description": f"{EVIL} changed"})
    rule = {"kind": "failures-in-a-row", "count": 1, "description": EVIL, "jobs": ["hostile"]}
    site.fleet.request("PUT", "/alert-rules/evil", rule)
    eventually_sync(lambda: site.get(f"/executions/{failed}")["status"] == "failed", within=30)
    return {"failed": failed, "flow": flow}


async def test_no_stored_text_is_executed(page, site, hostile):
    failed, flow = hostile["failed"], hostile["flow"]
    views = [
        "", "jobs", "jobs/hostile", "jobs/hostile?tab=definition", "jobs/hostile?tab=schedule", "jobs/hostile/edit",
        f"executions/{failed}", f"executions/{flow}", "executions", "queues/default", "dead-letters",
        "dead-letters?tab=letters", "alerts", "alerts?tab=rules", "audit", "settings", "settings?tab=namespaces",
        "jobs/hostile/edit?as=yaml", "jobs/hostile?do=trigger",
        "events?do=send&name=%3Csvg%20onload=window.hacked=23%3E",
        "schedule", f"jobs?search={'%3Cimg%20src=x%20onerror=window.hacked=20%3E'}",
        "executions?job=%22%3E%3Csvg%20onload=window.hacked=21%3E", "queues/%3Cscript%3Ewindow.hacked=22%3C/script%3E",
    ]  # fmt: skip
    for view in views:
        await page.goto(f"{site.url}/ui/{view}" if view else site.url)
        await expect(page.locator("main .page, main .empty, main .failure").first).to_be_visible()
        await expect(page.locator("main .loading")).to_have_count(0)
        assert await page.evaluate("window.hacked") is None, view
        assert await page.locator(MADE).count() == 0, view
    forgive(page, "status of 4")


async def test_a_url_cannot_make_the_page_read_an_artifact_as_an_execution(page, site, hostile):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(f"{site.url}/ui/executions/{hostile['failed']}%2Fartifacts%2Fexecution.json")
    await expect(page.get_by_text("There is no such page.")).to_be_visible()
    assert not [url for url in asked if "/api/" in url and "/artifacts" in url]


async def test_typed_and_pasted_input_is_text(page, site, hostile):
    await page.goto(site.url)
    await expect(page.locator("main .page")).to_be_visible()  # the key handlers are installed
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill(CORPUS[1])
    await expect(page.get_by_role("option", name="hostile")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.goto(f"{site.url}/ui/dead-letters")
    await page.get_by_label("Search messages").fill(CORPUS[0])
    await expect(page.locator("main table").first).to_be_visible()
    assert await page.evaluate("window.hacked") is None
    assert await page.locator(MADE).count() == 0


TURNED = "invoice\u202efdp.exe \u2066x\u2069 \x1b[2J \x9bA \u200f"
ACTING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def turned(site):
    """Create a failed execution with control characters in its params, log and error."""
    fails = f"import sys; print({TURNED!r}); sys.exit({TURNED!r})"
    params = {"text": TURNED, TURNED: 1}
    site.post("/jobs", {"name": "turned", "command": ["python3", "-c", fails], "params": params, "retries": 0})
    failed = site.post("/jobs/turned/trigger", {})["executionId"]
    site.post("/events", {"name": "turned", "payload": {"text": TURNED}})
    eventually_sync(lambda: site.get(f"/executions/{failed}")["status"] == "failed", within=30)
    return failed


async def test_controls_are_shown_as_glyphs(page, site, turned):
    for view in ("jobs/turned", f"executions/{turned}", "executions", "dead-letters?tab=letters", "events"):
        await page.goto(f"{site.url}/ui/{view}")
        await expect(page.locator("main .page, main .empty, main .failure").first).to_be_visible()
        await expect(page.locator("main .loading")).to_have_count(0)
        if view.endswith(turned):
            await expect(page.locator(".log-line").first).to_contain_text("invoice\u27e8U+202E\u27e9fdp.exe")
            isolated = "node => getComputedStyle(node).unicodeBidi"
            assert await page.locator(".log-line").first.evaluate(isolated) == "isolate"
        told = await page.evaluate(
            "[document.body.innerText, ...[...document.querySelectorAll('[title]')].map(node => node.title)].join(' ')"
        )
        assert ACTING.findall(told) == [], view
