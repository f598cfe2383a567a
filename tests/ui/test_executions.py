"""Executions in the browser: found, read, retried, approved, and explained."""

import re

import pytest
from playwright.async_api import expect

from tests.ui.conftest import check, forgive
from tests.waiting import eventually

LINES = 100_000
FAILS = (
    "import sys; print('\\x1b[32mreading\\x1b[0m'); print('WARNING a slow disk'); sys.exit('no header in orders.csv')"
)
STEPS = [
    {"name": "extract", "command": ["echo", "five parts"]},
    {"name": "each", "command": ["echo", "part"], "after": ["extract"], "foreach": {"items": [1, 2, 3]}},
    {"name": "ask", "approval": {"roles": ["operator"], "message": "Load five parts?"}, "after": ["each"]},
    {"name": "go", "signal": {"name": "go"}, "after": ["ask"]},
    {"name": "load", "command": ["echo", "loaded"], "after": ["go"]},
]
MANY = [
    {"name": f"s{chain}_{place}", "sleep": "1ms"} | ({"after": [f"s{chain}_{place - 1}"]} if place else {})
    for chain in range(100)
    for place in range(5)
]

SAID = """async () => {
    const { sentence } = await import("/ui/pages/execution-words.js");
    const { painted, plain, settled } = await import("/ui/parts/ansi.js");
    const { sought } = await import("/ui/parts/log.js");
    const now = Date.parse("2026-11-16T10:00:00Z");
    const [due, began, queuedAt] = [40, -120, -2].map((s) => new Date(now + 1000 * s).toISOString());
    const error = { type: "TimeoutError" };
    return [
        sentence({ status: "waiting", reason: "retry", nextAttemptAt: due, retryCount: 1, error }, { now, most: 4 }),
        sentence({ status: "running", workerId: "w1", startedAt: began, retryCount: 0, message: "row 3" }, { now }),
        sentence({ status: "queued", queuedAt }, { now, summary: "No worker serves it." }),
        painted("\\u001b[1;31mbad\\u001b[0m, good").map(({ text, look }) => `${text}|${look}`).join(),
        painted("\\u001b[32;7mback").map(({ text, look }) => `${text}|${look}`).join(),
        JSON.stringify(settled("\\u001b[32m 9%\\r\\r99%\\u001b[0m\\r")),
        plain(" 9%\\r99%\\r"),
        ["a.c*x", "re:(?i)^a[bc]+", "re:(a+)+", "re:(a|a)*b", "re:a?a?", "re:(", "*"].map(sought).map(String).join(" "),
    ];
}"""


SHORT = """async () => {
    const { AllLines } = await import("/ui/parts/log-lines.js");
    const items = [{ number: 1, text: "x" }, { number: 2, text: "x" }];
    const page = { items, lines: 10, from: 1, to: 2, more: true, ended: true, truncated: null };
    const asked = window.fetch;
    window.fetch = async () => Response.json(page);
    const lines = new AllLines("x", () => {});
    lines.need(0, 9);
    await lines.busy;
    window.fetch = asked;
    return [...lines.known.keys()];
}"""


REFUSED = """async () => {
    const { FoundLines } = await import("/ui/parts/log-lines.js");
    const asked = window.fetch;
    let count = 0;
    window.fetch = async () => { count += 1; return Response.json({ detail: "no" }, { status: 400 }); };
    const lines = new FoundLines("x", () => {}, { grep: "re:(" }, true);
    const first = lines.grow();
    lines.grow(); // it is told of while it is read
    await first;
    lines.grown();
    await lines.busy;
    window.fetch = asked;
    return count;
}"""


@pytest.fixture(scope="module")
def run(site):
    """Create a job, run it, and return the execution's id."""

    def run(name: str, **definition) -> str:
        site.post("/jobs", {"name": name, **definition})
        return site.post(f"/jobs/{name}/trigger", {})["executionId"]

    return run


@pytest.fixture(scope="module")
def ended(site):
    async def ended(id: str) -> str:
        """Return the final status."""
        await eventually(lambda: site.get(f"/executions/{id}")["completedAt"], within=30)
        return site.get(f"/executions/{id}")["status"]

    return ended


async def test_a_running_execution_shows_its_activity_in_a_line(page, site):
    await page.goto(f"{site.url}/ui/executions")
    said = await page.evaluate(SAID)
    assert said == [
        "waiting 40s to retry after TimeoutError, failed 1 of 4 tries",
        "running for 2m on w1: row 3",
        "queued for 2 s: No worker serves it.",
        "bad|ansi-red ansi-bold,, good|",
        "back|ansi-on ansi-back-green",
        '{"text":"\\u001b[32m99%\\u001b[0m","written":2}',
        " 9%\n99%",
        r"/a\.c|x/gi /^a[bc]+/gi null null null null null",  # slow patterns are not marked
    ]
    assert await page.evaluate(SHORT) == [1, 2]  # a short page shows no hint about missing lines
    assert await page.evaluate(REFUSED) == 1  # a refused search is not repeated automatically


async def test_a_failing_job_s_log_is_read_and_it_is_retried(page, site, run, ended):
    id = run("import-orders", command=["python3", "-c", FAILS], retries=1, retry=["10ms"])
    await ended(id)
    await page.goto(f"{site.url}/ui/executions?status=failed&job=import-orders")
    await check(page)
    await page.get_by_role("link", name="import-orders").click()

    await expect(page.locator(".doing")).to_have_text(re.compile(r"failed after .* at try 2 with ExitCode"))
    await expect(page.get_by_label("Error")).to_contain_text("no header in orders.csv")
    await expect(page.get_by_role("group", name="Its tries").locator(".gantt-row")).to_have_count(2)
    lines = page.get_by_role("region", name="Lines")
    await expect(lines.locator(".ansi-green").first).to_have_text("reading")
    await check(page)
    await page.get_by_label("Search the log").fill("slow*disk")
    await expect(lines.locator(".log-line")).to_have_count(2)
    await expect(page).to_have_url(re.compile("grep=slow"))
    await lines.locator(".log-number").first.click()
    await expect(page).to_have_url(re.compile(r"#L\d+$"))
    await expect(page.locator(".log-whole")).to_contain_text("WARNING a slow disk")

    await page.get_by_role("button", name="Retry", exact=True).click()
    await expect(page.get_by_text("It runs again, as a new execution.")).to_be_visible()
    await expect(page).not_to_have_url(re.compile(id))
    await expect(page.get_by_text("retry of")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_text("retried as")).to_be_visible()


async def test_a_list_that_is_read_stays_still_and_chosen_ones_are_cancelled_together(page, site, run):
    run("later", command=["true"])

    def put_off() -> str:
        return site.post("/jobs/later/trigger", {"delay": "1h"})["executionId"]

    ids = [put_off(), put_off()]
    await page.goto(f"{site.url}/ui/executions?job=later&status=waiting")
    boxes = page.get_by_role("checkbox", name="choose", exact=True)
    await expect(boxes).to_have_count(2)
    await boxes.first.check()
    ids.append(put_off())
    fresh = page.get_by_role("button", name="1 new execution: show")
    await expect(fresh).to_be_visible()
    await expect(boxes).to_have_count(2)
    await fresh.click()
    await expect(boxes).to_have_count(3)
    await page.get_by_role("checkbox", name="choose all that are shown").check()
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await page.get_by_role("button", name="Cancel 3 executions").click()
    await expect(page.get_by_text("No execution fits these filters.")).to_be_visible()
    assert [site.get(f"/executions/{id}")["status"] for id in ids] == ["cancelled"] * 3


LIVE = """async () => (await import("/ui/core/live.js")).connected.value"""


async def test_a_missing_execution_leads_to_the_list(page, site):
    await page.goto(f"{site.url}/ui/executions/00000000-0000-7000-8000-000000000000")
    await expect(page.get_by_role("heading", level=1)).to_have_text("No such execution")
    await expect(page.locator("main")).not_to_contain_text("`")
    await eventually(lambda: page.evaluate(LIVE))  # the page still receives updates
    await check(page)
    await page.locator("main").get_by_role("link", name="All executions").click()
    await expect(page.get_by_role("heading", name="Executions", level=1)).to_be_visible()
    forgive(page, 404)


@pytest.mark.parametrize(
    ("path", "title", "way"),
    [
        ("queues/nope", "nope", "All queues"), ("workers/nope", "Worker", "All workers"),
        ("jobs/nope", "nope", "Look for one like it"), ("jobs/nope/edit", "nope", "All jobs"),
        ("nowhere", "No such page", "overview"), ("jobs?ns=nope", "No such namespace", "Go to your own namespace"),
    ],
)  # fmt: skip
async def test_a_page_of_a_missing_object_has_a_heading_and_a_link(page, site, path, title, way):
    await page.goto(f"{site.url}/ui/{path}")
    await expect(page.get_by_role("heading", level=1)).to_have_text(title)
    lead = "button" if "ns=" in path else "link"
    await expect(page.locator("main").get_by_role(lead, name=way)).to_be_visible()
    if lead == "link":
        await expect(page.locator("main")).not_to_contain_text(
            "horae "
        )  # users of the page have a browser, not a terminal
    await check(page)
    forgive(page, 404)


async def test_commands_in_messages_about_a_job_can_be_copied(page, site, run):
    id = run("tune", command=["true"], needs=["gpu=h100"])
    await page.goto(f"{site.url}/ui/jobs/tune?tab=explain")
    await expect(page.locator("main .blockers code").first).to_have_text("horae worker --label gpu=h100")
    await expect(page.locator("main")).not_to_contain_text("`")
    await page.evaluate(
        """async () => (await import("/ui/core/act.js")).toast({ text: "`to` lies ahead.", remedy: "Run `ls`." })"""
    )
    await expect(page.locator(".toast code")).to_have_text(["to", "ls"])
    await page.route("**/explain", lambda route: route.abort())  # then only a hint is known
    await page.goto(f"{site.url}/ui/executions/{id}")
    await expect(page.locator(".doing")).to_contain_text("start one with horae worker --label gpu=h100")
    forgive(page, "net::ERR_FAILED")


async def test_a_job_that_does_not_run_shows_the_reason_and_remedy(page, site, run):
    id = run("train", command=["true"], needs=["gpu=a100"])
    await page.goto(f"{site.url}/ui/executions/{id}")
    await expect(page.locator(".doing")).to_contain_text("No live worker carries the label gpu=a100.")
    first = page.locator(".gates li").first
    await expect(first).to_contain_text("no-worker")
    await expect(first.locator("code")).to_have_text("horae worker --label gpu=a100")
    await expect(page.locator(".explain")).to_contain_text("Its start cannot be estimated.")
    await check(page)
    await page.goto(f"{site.url}/ui/jobs/train?tab=explain")
    reason = "Its start cannot be estimated: No live worker carries the label gpu=a100."
    await expect(page.locator("main .entry")).to_contain_text(reason)
    await page.goto(f"{site.url}/ui/executions/{id}")
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await page.get_by_role("button", name="Cancel it").click()
    await expect(page.locator("h1")).to_contain_text("cancelled")  # the page updates by itself


async def test_a_step_is_approved_and_its_log_read_beside_the_graph(page, site, run, ended):
    id = run("etl", workflow={"steps": STEPS})
    await page.goto(f"{site.url}/ui/executions/{id}")
    asked = page.get_by_label("Waits for approval: ask")
    await expect(asked).to_contain_text("Load five parts?")
    graph = page.get_by_role("group", name="The steps of etl")
    await expect(graph.get_by_role("button", name="each, success, 3 of 3 done")).to_be_visible()
    await check(page)

    await asked.get_by_label("Comment on ask").fill("as agreed")
    await asked.get_by_role("button", name="Approve", exact=True).click()
    await page.get_by_role("button", name="Signal …").click()
    await expect(page.get_by_label("Name", exact=True)).to_have_value("go")
    await page.get_by_label("Payload (JSON)").fill('{"by": "ada"}')
    await check(page)
    await page.get_by_role("button", name="Send it", exact=True).click()
    await expect(page.get_by_role("status").filter(has_text="The signal go was delivered.")).to_be_visible()
    await expect(graph.get_by_role("button", name="load, success")).to_be_visible()
    approved = re.compile("^ask, success: approved by [a-z]+: as agreed$")
    await expect(graph.locator("[data-step=ask] title")).to_have_text(approved)
    assert await ended(id) == "success"

    await graph.get_by_role("button", name="extract, success").focus()
    await page.keyboard.press("ArrowRight")
    await expect(graph.locator("[data-step=each]")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("step=each"))
    await expect(page.locator(".item-list li")).to_have_count(3)
    await page.get_by_role("button", name="Run again from here").click()
    await expect(page.get_by_label("From", exact=True)).to_have_value("each")
    await check(page)
    await page.keyboard.press("Escape")
    await page.get_by_role("group", name="The steps along the time").get_by_role("button", name="load").click()
    await expect(page.get_by_role("region", name="Lines")).to_contain_text("loaded")
    await check(page)


async def test_five_hundred_steps_are_few_groups(page, site, run, ended):
    id = run("many-steps", workflow={"steps": MANY})
    await ended(id)
    answers = iter([True])
    await page.route("**/dagre.js", lambda route: route.abort() if next(answers, False) else route.continue_())
    await page.goto(f"{site.url}/ui/executions/{id}")  # the module that places the steps cannot be loaded at first
    nodes = page.get_by_role("group", name="The steps of many-steps").get_by_role("button")
    await expect(nodes).to_have_count(5)
    await nodes.first.click()
    await expect(page.locator(".item-list li")).to_have_count(100)
    await page.get_by_role("button", name="Show one by one").click()
    await expect(nodes).to_have_count(104)
    await page.get_by_text("The steps as a list").click()
    await expect(page.locator(".steps tbody tr")).to_have_count(500)
    forgive(page, "net::ERR_FAILED")


async def test_a_log_of_many_lines_is_shown_by_windows_and_linked_by_line(page, site, run, ended):
    id = run("verbose", command=["python3", "-c", f"print('\\n'.join(f'line {{i + 1}}' for i in range({LINES})))"])
    await ended(id)
    await page.goto(f"{site.url}/ui/executions/{id}#L70000")
    lines = page.get_by_role("region", name="Lines")
    await expect(lines.locator(".chosen")).to_contain_text("line 70000")
    await expect(page.get_by_text(f"{LINES:,} lines")).to_be_visible()
    await lines.evaluate("box => { box.scrollTop = box.scrollHeight; }")
    await expect(lines.get_by_text(f"line {LINES}", exact=True)).to_be_visible()
    await page.get_by_label("Go to line").fill("1")
    await page.keyboard.press("Enter")
    await expect(lines.locator(".chosen")).to_have_text(re.compile("^1line 1$"))
    assert await lines.locator(".log-line").count() < 200
    await page.get_by_label("Search the log").fill(r"re:\d*999$")
    await expect(page.get_by_text(f"100 of {LINES:,} lines")).to_be_visible()  # all that there are


IS_SEEN = """line => {
  const { left, top, bottom } = line.getBoundingClientRect();
  return [top + 2, bottom - 2].every((y) => line.parentElement.contains(document.elementFromPoint(left + 2, y)));
}"""


async def test_the_newest_line_of_a_followed_log_is_visible(page, site, run):
    says = "import time; print(*(f'line {i + 1}' for i in range(300)), sep='\\n', flush=True); time.sleep(600)"
    id = run("talks", command=["python3", "-c", says])
    await eventually(lambda: site.get(f"/executions/{id}/logs?tail=1")["totalLines"] == 300, within=30)
    for width, height in ((1440, 900), (1024, 768), (390, 844)):
        await page.set_viewport_size({"width": width, "height": height})
        await page.goto(f"{site.url}/ui/executions/{id}")
        newest = page.locator(".log-line", has_text=re.compile("line 300$"))
        await expect(newest).to_be_in_viewport(ratio=1)
        assert await newest.evaluate(IS_SEEN), width
        await page.evaluate("""async () => { (await import("/ui/core/api.js")).online.value = false; }""")
        await expect(page.locator(".offline")).to_be_visible()  # it pushes the log down
        await expect(newest).to_be_in_viewport(ratio=1)
        assert await newest.evaluate(IS_SEEN), width
    site.post(f"/executions/{id}/cancel", {})


async def test_a_search_of_a_followed_log_starts_at_its_end(page, site, run):
    says = "import time; print(*(f'line {i + 1}' for i in range(3000)), sep='\\n')"
    says += "; print('9%\\r50%', end='', flush=True); time.sleep(600)"
    id = run("endless", command=["python3", "-c", says])
    await eventually(lambda: site.get(f"/executions/{id}/logs?tail=1")["totalLines"] == 3000, within=30)
    await page.goto(f"{site.url}/ui/executions/{id}?grep=line")
    lines = page.get_by_role("region", name="Lines")
    await expect(lines.get_by_text("line 3000", exact=True)).to_be_in_viewport(ratio=1)  # the newest line is seen
    await expect(page.get_by_text("500 or more of 3,000 lines")).to_be_visible()
    await lines.evaluate("box => { box.scrollTop = 0; }")
    await expect(page.get_by_text("1,000 or more of 3,000 lines")).to_be_visible()
    await expect(lines.get_by_text("line 2501", exact=True)).to_be_in_viewport()  # the visible lines do not move
    await page.get_by_label("Search the log").fill("re:(")
    await expect(page.get_by_role("alert")).to_contain_text("close all brackets")
    forgive(page, 400)
    await page.get_by_label("Search the log").fill("")
    await expect(lines.locator(".log-open")).to_contain_text("50%")  # it has no end yet
    site.post(f"/executions/{id}/cancel", {})
