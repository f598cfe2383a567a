"""Jobs in the browser: created and fired, triggered with params, paused, rolled back, backfilled."""

import json
import re

from playwright.async_api import Page, expect

from horae.model.documents.yaml_text import read_documents
from tests.ui.conftest import Site, check, refused
from tests.waiting import eventually

SCHEMA = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\d$"},
        "rows": {"type": "integer", "default": 10, "minimum": 1},
        "share": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "mode": {"enum": ["1", 1]},
        "level": {"$ref": "#/$defs/Level"},
        "force": {"type": "boolean"},
        "to": {"type": "array", "items": {"type": "string"}},
        "db": {
            "type": "object",
            "required": ["host"],
            "properties": {"host": {"type": "string", "format": "hostname"}},
        },
        "more": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "default": "b"}}},
        "own": {"type": "string"},
    },
    "required": ["day", "force", "db"],
    "$defs": {"Level": {"oneOf": [{"const": "a", "title": "first"}, {"const": "b"}], "default": "b"}},
}

ODD = {
    "lines": "a\n  b\n\nc", "end": "a\n", "return": "a\rb\nc",
    "delete": "\x7f\n\x85", "separator": "a\u2028b\nc", "🦆": "🦆\nü", "n": "n",
    "no": ["yes", "1e3", "0x1", "1:30", "2026-11-15", "a: b", "a #b", "- a", "", " a ", "~", "*a", "null", "[]"],
    "nested": [[], {}, [[1, 2.5], {"a": [{"b": None}]}], True],
}  # fmt: skip


async def test_a_cron_job_is_created_and_seen_to_fire(page: Page, site: Site):
    await page.goto(f"{site.url}/ui/jobs")
    await page.get_by_role("link", name="Create the first job").click()
    await page.get_by_label("name", exact=True).fill("tick tock")
    await page.get_by_label("command", exact=True).fill("echo tick")
    await expect(page.locator(".field .complaint")).to_contain_text("is not a valid name")
    await refused(page)
    await page.get_by_label("name", exact=True).fill("tick")
    await page.get_by_label("it runs").select_option("cron")
    await page.get_by_label("cron", exact=True).fill("* * * * * *")
    await expect(page.locator(".schedule-preview")).to_contain_text("every second")
    await expect(page.locator(".schedule-preview li")).to_have_count(5)
    await expect(page.locator(".edit-side")).to_contain_text("It can be made.")
    await check(page)

    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page).to_have_url(re.compile(r"/ui/jobs/tick$"))
    await expect(page.locator(".toast")).to_contain_text("tick was created.")
    await expect(page.get_by_role("table").get_by_text("success").first).to_be_visible()
    await expect(page.locator(".last-strip a").first).to_be_visible()

    await page.get_by_role("button", name="Pause", exact=True).click()
    await expect(page.locator(".headline")).to_contain_text("paused")
    await page.locator(".toast").get_by_role("button", name="Undo").last.click()
    await expect(page.locator(".headline")).not_to_contain_text("paused")
    await page.get_by_role("button", name="Pause", exact=True).click()  # it has fired enough for this test
    await expect(page.locator(".headline")).to_contain_text("paused")
    await check(page)


async def test_params_come_from_a_form_that_complains(page: Page, site: Site):
    site.post("/jobs", {"name": "load", "command": "echo ${params.day}", "schema": SCHEMA, "params": {"own": "mine"}})
    await page.goto(f"{site.url}/ui/jobs/load")
    await page.get_by_role("button", name="Trigger …").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Trigger", exact=True).click()
    await expect(dialog.locator(".complaint").first).to_have_text("needed")
    await dialog.get_by_label("day").fill("yesterday")
    await expect(dialog.locator(".complaint").first).to_contain_text("must match")
    await dialog.get_by_label("day").fill("2026-11-15")
    await dialog.get_by_label("share").press_sequentially("1.5")
    await dialog.get_by_label("mode").select_option(index=2)
    await dialog.get_by_label("to", exact=True).fill("a\nb")
    await dialog.get_by_label("own").fill("")
    await expect(dialog).to_contain_text('the job\'s own is used: "mine"')
    await dialog.get_by_label("host").fill("no host")
    await dialog.get_by_role("button", name="Trigger", exact=True).click()
    await expect(dialog.locator(".group .field").filter(has_text="host")).to_contain_text("is not a")
    await dialog.get_by_label("host").fill("db.example")
    await dialog.get_by_text("When and how").click()
    await dialog.get_by_label("after a delay").fill("soon")
    await dialog.get_by_role("button", name="Trigger", exact=True).click()
    await expect(dialog.get_by_text("'soon' is not a length of time.").first).to_be_visible()
    await expect(dialog.get_by_label("day")).to_have_value("2026-11-15")
    await refused(page)
    await dialog.get_by_label("after a delay").fill("")
    await check(page)
    await dialog.get_by_role("button", name="Trigger", exact=True).click()
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("table").get_by_text("success")).to_be_visible()
    ran = site.get("/jobs/load/executions")["items"]
    assert [one["params"] for one in ran] == [
        {
            "day": "2026-11-15",
            "rows": 10,
            "share": 1.5,
            "mode": 1,
            "level": "b",
            "force": False,
            "to": ["a", "b"],
            "db": {"host": "db.example"},
        }
    ]


async def test_a_version_is_rolled_back_and_a_late_edit_is_refused(page: Page, site: Site):
    job = site.post("/jobs", {"name": "mail", "command": "true", "timeout": "1m"})
    await page.goto(f"{site.url}/ui/jobs/mail/edit")
    await page.get_by_role("textbox", name="timeout", exact=True).fill("2m")
    await expect(page.locator(".edit-side")).to_contain_text("1 field would change")
    assert site.fleet.request("PATCH", "/jobs/mail", {"retries": 1}).status_code == 200
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator(".edit-side")).to_contain_text("Somebody changed this job meanwhile.")
    await expect(page.get_by_role("textbox", name="timeout", exact=True)).to_have_value("2m")
    await refused(page)
    await page.locator(".rail").get_by_role("link", name="Queues").click()
    await page.get_by_role("dialog").get_by_role("button", name="Leave it").click()
    await expect(page.get_by_role("textbox", name="timeout", exact=True)).to_have_value("2m")
    await page.locator(".rail").get_by_role("link", name="Queues").click()
    await page.get_by_role("dialog").get_by_role("button", name="Lose it").click()
    await expect(page).to_have_url(re.compile(r"/ui/queues$"))

    await page.goto(f"{site.url}/ui/jobs/{job['jobId']}?tab=definition")
    await page.get_by_role("button", name="version 1").click()
    await expect(page.locator(".diff .added")).to_contain_text("retries: 1")
    await check(page)
    await page.get_by_role("button", name="Roll back to 1", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Roll back to 1").click()
    await expect(page.locator(".toast")).to_contain_text("it is version 3")
    await expect(page.get_by_role("button", name="version 3")).to_be_disabled()
    assert site.get("/jobs/mail")["retries"] == 0

    await page.goto(f"{site.url}/ui/jobs/mail/edit?as=yaml")
    text, save = page.get_by_label("YAML, as"), page.get_by_role("button", name="Save", exact=True)
    await text.fill("name: mail\ncommand: 'true'\nschedule: {cron: 99 * * * *}\n")
    await expect(page.locator(".editor-wrong")).to_have_text("3")
    await text.fill("name: mail\ncommand: 'true'\nname: post\n")
    await expect(page.locator(".field .complaint")).to_contain_text("Line 3, column 1: the key 'name' occurs twice.")
    await expect(save).to_be_disabled()
    await refused(page)
    await text.fill("name: mail\ncommand: 'true' # as always\nschedule: {cron: 0 9 * * *}\n")
    await expect(page.locator(".schedule-preview")).to_contain_text("at 09:00 every day")
    await check(page)
    await save.click()
    await expect(page).to_have_url(re.compile(r"/ui/jobs/mail$"))
    assert site.get("/jobs/mail")["schedule"] == {"cron": "0 9 * * *"}

    site.post("/jobs", {"name": "long", "workflow": [{"name": f"s{n}", "command": "true"} for n in range(40)]})
    assert site.fleet.request("PATCH", "/jobs/long", {"description": "now with a word"}).status_code == 200
    await page.goto(f"{site.url}/ui/jobs/long?tab=definition&version=1")
    await expect(page.locator(".diff .added")).to_contain_text("now with a word")
    assert await page.locator(".diff .same").count() < 10
    await page.get_by_role("button", name="lines that are the same").click()
    await expect(page.locator(".diff")).to_contain_text("s39")
    await expect(page.get_by_role("button", name="and 20 more")).to_be_visible()
    said = await page.evaluate("async (value) => (await import('/ui/parts/yaml.js')).toYaml(value)", ODD)
    assert read_documents(said)[0].value == ODD


async def test_a_week_is_backfilled(page: Page, site: Site):
    site.post("/jobs", {"name": "daily", "command": "true", "schedule": "0 0 * * *"})
    await page.goto(f"{site.url}/ui/jobs/daily?tab=schedule")
    await expect(page.locator(".heat-coming").first).to_be_visible()
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Backfill …").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="the last week").click()
    await expect(dialog.locator(".plan")).to_contain_text("7 fires would run")
    await check(page)
    await dialog.get_by_role("button", name="Run 7 fires", exact=True).click()
    await expect(page.locator(".backfill")).to_contain_text("7 succeeded")
    await expect(page.locator(".backfill [data-state=success]")).to_be_visible()
    await check(page)

    await eventually(lambda: sum(day["success"] for day in site.get("/jobs/daily/days")["days"]) == 7)
    await page.reload()
    await page.locator(".heat a").press("Enter")  # the day on which they ran
    await expect(page.get_by_role("table").locator("[data-state=success]")).to_have_count(7)

    many = [{"name": f"t{n}", "cron": f"{n} 0 * * *"} for n in range(12)]
    site.post("/jobs", {"name": "dozen", "command": "true", "triggers": many})
    await page.goto(f"{site.url}/ui/jobs/dozen?tab=schedule")
    await expect(page.locator(".coming li")).to_have_count(10)  # one list for all, and one per trigger on demand
    await page.get_by_role("button", name="its next fires").first.click()
    await expect(page.locator(".coming li")).to_have_count(15)


async def test_many_jobs_are_selected_and_one_is_deleted_and_restored(page: Page, site: Site):
    for n in range(3):
        site.post("/jobs", {"name": f"many-{n}", "command": "true", "tags": ["many"]})
    await page.goto(f"{site.url}/ui/jobs?search=many")
    await expect(page.get_by_role("row")).to_have_count(4)
    await check(page)
    await page.get_by_label("choose all that are shown").check()
    await page.locator(".chosen-bar").get_by_role("button", name="Pause").click()
    await page.get_by_role("dialog").get_by_role("button", name="Pause 3 jobs").click()
    await expect(page.locator("[data-state=paused]")).to_have_count(3)
    await page.locator(".toast").get_by_role("button", name="Undo").click()
    await expect(page.locator("[data-state=paused]")).to_have_count(0)
    await page.get_by_label("choose all that are shown").check()
    await page.locator(".chosen-bar").get_by_role("button", name="Trigger").click()
    await page.get_by_role("dialog").get_by_role("button", name="Trigger 3 jobs").click()
    await expect(page.locator(".strip")).to_have_count(3)

    await page.get_by_role("link", name="many-1").click()
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Delete …").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("This job is deleted")).to_be_visible()
    await page.locator(".toast").get_by_role("button", name="Restore").click()
    await expect(page).to_have_url(re.compile(r"/ui/jobs/many-1"))
    await expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()


async def test_an_event_is_sent_after_a_preview_of_its_effects(page: Page, site: Site):
    large = {"name": "large", "event": "upload", "filter": "${event.payload.size > 10}"}
    site.post("/jobs", {"name": "unpack", "command": "true", "triggers": [{"name": "all", "event": "upload"}, large]})
    asked: list[bool] = []  # whether events were to be stored, or dry runs
    page.on("request", lambda one: asked.append("idempotency-key" in one.headers) if "dryRun" in one.url else None)
    await page.goto(f"{site.url}/ui/events")
    await expect(page.locator(".empty")).to_contain_text("No event came yet.")
    await page.get_by_role("button", name="Send an event …").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("name").fill("uplaod")
    await expect(dialog.locator(".plan")).to_contain_text('Did you mean "upload"?')
    await dialog.get_by_label("name").fill("upload")
    await dialog.get_by_label("payload").fill('{"size": ')
    await expect(dialog.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    await dialog.get_by_label("payload").fill('{"size": 5}')
    await expect(dialog.locator(".plan")).to_contain_text("It would start 1 job.")
    await expect(dialog.locator(".plan")).to_contain_text("large: the filter is false")
    await check(page)
    assert site.get("/events")["items"] == []
    assert set(asked) == {False}

    await dialog.get_by_role("button", name="Send", exact=True).click()
    await expect(page.get_by_role("table")).to_contain_text("unpack: the filter is false")
    await expect(page.locator(".panel")).to_contain_text('"size": 5')
    await page.reload()
    await expect(page.locator(".panel").get_by_role("link", name="unpack").first).to_be_visible()
    await page.get_by_role("tab", name="Who listens").click()
    await expect(page.get_by_role("table")).to_contain_text("${event.payload.size > 10}")
    await check(page)


async def test_ten_thousand_executions_are_seen_through_a_window(page: Page, site: Site):
    steps = dict.fromkeys(("extract", "load"), "success")
    one = {"status": "success", "at": "2026-11-15T08:00:00Z", "seconds": 2, "steps": steps}
    many = [{"executionId": f"e{n}", **one} for n in range(10_000)]
    answers = {"limit=100": many[:100], "limit=500": many}
    whole = {
        limit: json.dumps({"steps": [*steps], "items": items, "nextCursor": None}) for limit, items in answers.items()
    }
    site.post("/jobs", {"name": "etl", "workflow": {"steps": [{"name": "extract", "command": "true"}]}})
    await page.route(
        "**/grid?*",
        lambda route: route.fulfill(body=whole[route.request.url.partition("?")[2]], content_type="application/json"),
    )

    await page.goto(f"{site.url}/ui/jobs/etl?view=grid")
    await expect(page.locator(".grid-legend")).to_contain_text("10,000 executions")
    assert 0 < await page.locator(".grid-column").count() < 300
    await page.locator(".grid-scroll").evaluate("(box) => { box.scrollLeft = -box.scrollWidth; }")
    await expect(page.locator(".grid-column[href$='/e9999']")).to_be_visible()
    assert 0 < await page.locator(".grid-column").count() < 300
