"""Queues, workers, dead letters, the audit log and settings, as operators use them."""

import json
import re

import pytest
from playwright.async_api import expect

from tests.ui.conftest import check, forgive
from tests.waiting import eventually, eventually_sync


@pytest.fixture(scope="module", autouse=True)
def dead_letters(site):
    site.post("/jobs", {"name": "broken", "command": ["false"]})
    site.post("/executions", {"job": "broken", "items": [{"n": n} for n in range(12)]})
    eventually_sync(lambda: sum(one["count"] for one in site.get("/dlq/groups")["items"]) == 12, within=30)


@pytest.mark.parametrize(
    ("path", "heading"),
    [("queues", "Queues"), ("queues/default", "default"), ("workers", "Workers"), ("dead-letters", "Dead letters"),
     ("alerts", "Alerts"), ("alerts?tab=rules", "Alerts"), ("audit", "Audit log"),
     ("settings", "Settings"), ("settings?tab=namespaces", "Settings"),
     ("settings?tab=people", "Settings"), ("settings?tab=secrets", "Settings"), ("settings?tab=servers", "Settings")],
)  # fmt: skip
async def test_every_page_is_accessible(page, site, path, heading):
    await page.goto(f"{site.url}/ui/{path}")
    await expect(page.get_by_role("heading", name=heading, exact=True, level=1)).to_be_visible()
    await expect(page.locator("main table, main .empty").first).to_be_visible()
    await expect(page.get_by_text("Reading Horae")).to_have_count(0)
    await check(page)


async def test_dead_letters_are_retried_in_bulk_after_their_number_is_shown(page, site):
    await page.goto(f"{site.url}/ui/dead-letters?job=broken")
    await page.get_by_role("button", name="Retry these 12").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Retry 12 dead letters")
    await dialog.get_by_label("So many in a span").fill("100/1s")
    await check(page)
    await dialog.get_by_role("button", name="Retry 12", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("12 dead letters run again")
    await expect(page.get_by_role("button", name="copy as command")).to_be_visible()
    await page.get_by_role("link", name="look at it").click()
    await expect(page.get_by_text("12 run again")).to_be_visible()


async def test_dead_letters_of_one_error_are_retried_from_their_row(page, site):
    await page.goto(f"{site.url}/ui/dead-letters?job=broken")
    await page.get_by_role("row").filter(has_text="broken").get_by_role("button", name="Retry …").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Retry 12", exact=True)).to_be_in_viewport(ratio=1)
    await check(page)
    await page.keyboard.press("Escape")
    await page.get_by_role("row").filter(has_text="broken").locator("td").first.click()
    await expect(page.get_by_label("job", exact=True)).to_have_value("broken")


@pytest.mark.parametrize(("view", "cell"), [("month", ".cell"), ("week", ".hour-cell")])
async def test_the_schedule_counts_only_failures_of_triggered_executions(page, site, view, cell):
    site.fleet.request("POST", "/jobs", {"name": "nightly", "command": ["true"], "schedule": "0 3 * * *"})
    await page.goto(f"{site.url}/ui/schedule?view={view}")
    await expect(page.locator(f"main {cell}").first).to_be_visible()
    assert "failed" not in await page.locator("main").inner_html()
    await check(page)


async def test_a_purge_of_one_execution_is_described_in_the_singular(page, site):
    site.fleet.request("PUT", "/queues/lone", {})
    site.post("/queues/lone/pause", {})
    site.post("/jobs", {"name": "alone", "command": ["true"], "queue": "lone"})
    site.post("/jobs/alone/trigger", {})
    await page.goto(f"{site.url}/ui/queues/lone")
    await page.get_by_role("button", name="Purge", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("1 execution that has not begun is cancelled")
    asked = dialog.get_by_text("Type lone to go on")
    assert (await asked.bounding_box())["height"] < 30, "the sentence is one line"
    await expect(dialog.locator("button:disabled")).to_have_attribute("title", "Type lone first.")
    await check(page)
    await page.keyboard.press("Escape")


async def test_all_counted_dead_letters_are_discarded_in_several_requests(page, site):
    async def few(route):
        body = route.request.post_data_json
        body["filter"]["limit"] = 5
        sizes.append(body["filter"])
        await route.continue_(post_data=json.dumps(body))

    sizes: list[dict[str, object]] = []
    await eventually(lambda: sum(one["count"] for one in site.get("/dlq/groups")["items"]) == 12, within=30)
    await page.route("**/dlq/discard", few)
    await page.goto(f"{site.url}/ui/dead-letters?job=broken")
    await page.get_by_role("button", name="Discard these 12", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Discard 12").click()
    await expect(page.get_by_role("status").filter(has_text="12 dead letters discarded")).to_be_visible()
    assert len(sizes) == 3
    assert all(one["until"] for one in sizes)  # none that arrived after they were counted
    assert site.get("/dlq/groups")["items"] == []


async def test_a_queue_is_created_changed_drained_and_resumed_by_undo(page, site):
    await page.goto(f"{site.url}/ui/queues")
    await page.get_by_role("button", name="New queue").click()
    await page.get_by_label("Name", exact=True).fill("reports")
    await page.get_by_label("Who is next").select_option("fair")
    await expect(page.get_by_role("button", name="Make it")).to_be_disabled()  # the field for the share is missing
    await page.get_by_label("The key that divides executions into shares").fill("${params.customer}")
    await page.get_by_label("The weights of shares").fill("acme=5, others=1")
    await page.get_by_label("How often they start").fill("100/1m")
    await check(page)
    await page.get_by_role("button", name="Make it").click()
    await expect(page).to_have_url(re.compile("/ui/queues/reports$"))
    made = site.get("/queues/reports")
    assert (made["policy"]["weights"], made["rate"]) == ({"acme": 5, "others": 1}, "100/1m")

    await page.get_by_role("button", name="Change …").click()
    await page.get_by_label("How many of its executions run at once").fill("4")
    await page.get_by_label("How often they start").fill("")
    same = page.get_by_role("dialog").get_by_role("button", name="copy as command")
    await expect(same).to_have_attribute("title", "horae queues set reports --concurrency 4 --rate none")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("0 of 4 places")).to_be_visible()
    assert site.get("/queues/reports")["policy"] == made["policy"]

    await page.get_by_role("button", name="Hold for a time").click()
    await page.get_by_label("For how long").fill("soon")
    await page.get_by_role("button", name="Hold", exact=True).click()
    await expect(page.get_by_role("dialog")).to_contain_text("'soon' is not a length of time")  # where it was typed
    forgive(page, 400)
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Drain", exact=True).click()
    await page.get_by_role("status").filter(has_text="takes nothing new").get_by_role("button", name="Resume").click()
    await expect(page.locator("dd [data-state=active]")).to_be_visible()
    assert site.get("/queues/reports")["state"] == "active"


async def test_keys_move_from_one_table_of_a_page_to_the_next(page, site):
    site.post("/jobs", {"name": "long", "command": ["sleep", "600"], "concurrency": 1})
    for _ in range(2):
        site.post("/jobs/long/trigger", {})
    await eventually(lambda: site.get("/queues/default")["running"] == 1, within=30)
    await page.goto(f"{site.url}/ui/queues/default")
    places, waiting = (page.get_by_role("region", name=name) for name in ("what runs", "what waits"))
    await expect(places.locator("tbody tr")).to_have_count(1)
    await expect(waiting.locator("tbody tr")).to_have_count(1)
    await page.keyboard.press("j")
    await expect(places.locator("tr.at")).to_have_count(1)
    await page.keyboard.press("j")
    await expect(waiting.locator("tr.at")).to_have_count(1)
    await expect(places.locator("tr.at")).to_have_count(0)
    await page.keyboard.press("k")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_contain_text("long")
    for one in site.get("/executions?job=long")["items"]:
        site.post(f"/executions/{one['executionId']}/cancel", {})


async def test_a_rule_is_created_and_its_alert_fires_and_is_acknowledged(page, site):
    await page.goto(f"{site.url}/ui/alerts?tab=rules")
    await page.get_by_role("button", name="New rule").click()
    await page.get_by_label("Name", exact=True).fill("broken again")
    await page.get_by_label("Which jobs").fill("brok*")
    await check(page)
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("name")
    forgive(page, 400)
    await page.get_by_label("Name", exact=True).fill("broken-again")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("row", name=re.compile("broken-again"))).to_be_visible()

    await page.get_by_role("tab", name="Alerts").click()
    await expect(page.get_by_role("row", name=re.compile("in a row"))).to_be_visible(timeout=30_000)
    await page.get_by_role("button", name="Acknowledge", exact=True).click()
    await expect(page.get_by_text("acknowledged by")).to_be_visible()


async def test_a_key_is_created_shown_once_and_revoked(page, site):
    await page.goto(f"{site.url}/ui/settings")
    await page.get_by_role("button", name="New key").click()
    await page.get_by_label("Name").fill("for a robot")
    await page.get_by_role("button", name="Make the key").click()
    await expect(page.get_by_role("dialog").locator("code")).to_have_text(re.compile("^hk_"))
    await page.get_by_role("button", name="I have it").click()
    row = page.get_by_role("row", name=re.compile("for a robot"))
    await row.get_by_role("button", name="Revoke", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke it").click()
    await expect(row).to_contain_text("revoked")

    await page.goto(f"{site.url}/ui/audit?action=keys.revoke")
    await page.get_by_role("button", name="details").click()
    await expect(page.get_by_role("dialog")).to_contain_text("keys.revoke")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Check the chain").click()
    await expect(page.get_by_text("rows hold")).to_be_visible()


@pytest.fixture
def extra(site):
    """Start a worker that may leave without affecting the site."""
    site.fleet.add_worker("extra")


async def test_a_worker_is_drained(page, site, extra):
    await page.goto(f"{site.url}/ui/workers?search=extra")
    await page.get_by_role("button", name="Drain", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Drain it").click()
    await expect(page.get_by_role("status").filter(has_text="leaves")).to_be_visible()
    await eventually(lambda: site.fleet.worker("extra")["status"] != "live", within=20)
