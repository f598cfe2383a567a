"""The first visit after `make up`.

The demo runs, a failure is retried, the palette searches, the schedule shows fires.
"""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import expect

from tests.ui.conftest import check


@pytest.fixture(scope="module")
def demo():
    return True


async def test_the_first_visit_is_not_empty_and_a_failure_is_retried(page, site):
    await page.goto(site.url)
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    needs = page.locator(".needs")
    await expect(needs).to_contain_text("demo-fails", timeout=60_000)  # after its last attempt
    await expect(needs).to_contain_text("RuntimeError")
    await expect(page.get_by_role("link", name="demo-import").first).to_be_visible()
    await expect(page.locator(".dial .segment").first).to_be_attached()
    await expect(page.locator(".chart canvas")).to_have_count(3)
    await check(page)

    asked = needs.locator("li").filter(has_text="Publish 4200 rows?")
    await asked.get_by_role("button", name="Approve", exact=True).click()
    await expect(page.locator(".toasts")).to_contain_text("goes on")
    await expect(asked).to_have_count(0)

    await needs.get_by_role("button", name="Retry", exact=True).click()
    await expect(page.locator(".toasts")).to_contain_text("runs again")
    await expect(page.locator(".toasts")).to_contain_text("copy as curl")
    assert any(one["retryOf"] for one in site.get("/jobs/demo-fails/executions")["items"])


async def test_an_hour_of_the_dial_is_announced_and_selected_with_the_keyboard(page, site):
    await page.goto(site.url)
    now = page.locator('.dial .segment[data-at^="past"]').last
    await now.focus()
    await expect(page.locator(".behind")).to_contain_text(re.compile("success|nothing ended"))
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"from=.*&to="))
    await page.get_by_role("button", name="leave this range").click()
    await expect(page).not_to_have_url(re.compile("from="))
    await page.get_by_role("button", name="as a strip").click()
    await expect(page.locator(".dial.strip")).to_be_visible()
    await page.get_by_role("button", name="24h").click()
    await expect(page).to_have_url(re.compile("range=24h"))
    await page.reload()
    await expect(page.locator(".dial.strip")).to_be_visible()


async def test_search_finds_jobs_queues_and_executions_and_runs_commands(page, site):
    await page.goto(f"{site.url}/ui/queues")
    await expect(page.locator("main .page")).to_be_visible()  # the key handlers are installed

    async def typed(text):
        await page.keyboard.press("Control+k")
        await page.locator(".palette-input").fill(text)
        return page.locator(".palette-list").get_by_role("option")

    await expect((await typed("demo-orders")).filter(has_text="queue")).to_be_visible()
    await page.keyboard.press("Escape")
    newest = site.get("/jobs/demo-primes/executions")["items"][0]["executionId"]
    await expect((await typed(newest[-8:])).first).to_contain_text("demo-primes")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(newest))

    await typed("pause demo-tick")
    await page.keyboard.press("Enter")  # at once: it refers to the typed text
    await expect(page.locator(".toasts")).to_contain_text("demo-tick is paused")
    assert site.get("/jobs/demo-tick")["state"] == "paused"
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator(".toasts")).to_contain_text("as it was")
    assert site.get("/jobs/demo-tick")["state"] == "active"


async def test_the_schedule_by_month_week_day_and_list(page, site):
    await page.goto(f"{site.url}/ui/schedule")
    await expect(page.locator(".week .hour-cell.now")).to_be_visible()
    await check(page)
    await page.get_by_role("button", name="month").click()
    await expect(page.locator(".month .cell")).to_have_count(42)
    await page.locator(".month .today").click()
    await expect(page).to_have_url(re.compile("view=day"))
    await expect(page.locator(".day-hours > li.now")).to_be_visible()

    today = datetime.now(UTC).date()  # the last minute of an hour, of a day or of a week may have no coming fires
    await page.goto(f"{site.url}/ui/schedule?at={today + timedelta(days=7)}")
    await expect(page.locator(".week .hour-cell").first).to_have_text(re.compile(r"\d"))
    await page.locator(".week .hour-cell").first.focus()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("region", name="fires of this hour").locator("li").first).to_be_visible()

    await page.goto(f"{site.url}/ui/schedule?view=day&at={today + timedelta(days=1)}")
    await expect(page.locator(".day-hours > li").first).to_contain_text("to come")
    await expect(page.get_by_role("button", name="in the minute of").first).to_be_visible()
    await check(page)

    await page.goto(f"{site.url}/ui/schedule?view=list&job=demo-tick")
    rows = page.get_by_role("region", name="fires").locator("li")
    await expect(rows.filter(has_text="to come").first).to_contain_text("demo-tick")
    await expect(page.locator(".fires")).not_to_contain_text("demo-shop")
    await page.get_by_label("time zone").fill("Asia/Kolkata")
    await page.get_by_label("what became of it").select_option("to come")
    await expect(page.get_by_text("The next ones")).to_be_visible()
    await expect(rows.filter(has_text="success")).to_have_count(0)
    await expect(rows.first).to_contain_text("to come")
