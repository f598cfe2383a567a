"""A server without optional features: no page links to a disabled feature, and no page requests one."""

import pytest
from playwright.async_api import expect

from horae.feature import optional
from tests.ui.conftest import check

LEFT = ["Overview", "Jobs", "Executions", "Schedule", "Queues", "Workers", "Audit log", "Settings"]


@pytest.fixture(scope="module")
def features() -> str:
    return ",".join(f"-{name}" for name in optional())


async def test_no_link_leads_to_a_disabled_feature(page, site):
    await page.goto(site.url)
    rail = page.get_by_role("navigation", name="Pages")
    await expect(rail.get_by_role("link", name="Jobs")).to_be_visible()
    assert [await one.inner_text() for one in await rail.get_by_role("link").all()] == ["Horae", *LEFT]
    await check(page)


async def test_a_page_of_a_disabled_feature_shows_how_to_enable_it(page, site):
    await page.goto(f"{site.url}/ui/alerts")
    await expect(page.get_by_text("The feature alerts is switched off on this server.")).to_be_visible()
    await expect(page.get_by_text('Remove "-alerts" from its setting features')).to_be_visible()
    await check(page)


@pytest.mark.parametrize("path", ["", "jobs", "executions", "schedule", "queues", "workers", "audit", "settings"])
async def test_no_page_requests_a_disabled_feature(page, site, path):
    """Check for failed requests: a disabled route would answer 404, and the browser would report it."""
    await page.goto(f"{site.url}/ui/{path}")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await check(page)


async def test_a_job_and_its_execution_are_shown(page, site):
    job = site.post("/jobs", {"name": "hello", "command": "echo hello", "schedule": "0 0 1 1 *"})
    execution = site.post("/jobs/hello/trigger")["executionId"]
    await page.goto(f"{site.url}/ui/executions/{execution}")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("hello")
    await expect(page.get_by_role("region", name="Log")).to_have_count(0)
    for tab in ("executions", "schedule", "definition", "dependencies"):
        await page.goto(f"{site.url}/ui/jobs/{job['name']}?tab={tab}")
        await expect(page.get_by_role("tab", selected=True)).to_be_visible()
        await check(page)
    await expect(page.get_by_role("tab", name="Statistics")).to_have_count(0)
