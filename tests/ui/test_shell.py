"""The frame: signing in and out, navigation, namespaces, reading, and messages about failures."""

import re
import time

from playwright.async_api import expect

from tests.ui.conftest import check, forgive
from tests.waiting import eventually

RULE = "three-in-a-row"
# A slow read during many changes: the number of its starts, the displayed states, and the pause after it.
SLOW = """async () => {
    const { look } = await import("/ui/core/reads.js");
    const shown = [], answers = [];
    const tell = ({ data }) => data && shown.push(data.n);
    const read = look("slow", () => new Promise((answer) => answers.push(answer)), tell);
    const begun = async (n) => { while (answers.length < n) await new Promise((go) => setTimeout(go, 1)); };
    for (let n = 0; n < 100; n += 1) read.changed(0);
    const meanwhile = answers.length;
    answers[0]({ n: 1 });
    await begun(2);
    answers[1]({ n: 2 });
    await read.busy;
    const calm = read.pause(1000);
    read.changed(1000, 10000);
    const busy = read.pause(1000);
    read.leave(tell);
    return { meanwhile, shown, begun: answers.length, calm, busy };
}"""
COPIED = """async () => {
    const { curl, paramsWord, shell } = await import("/ui/core/script.js");
    const { secretNames } = await import("/ui/parts/schema.js");
    const { toYaml } = await import("/ui/parts/yaml.js");
    const secret = { anyOf: [{ $ref: "#/$defs/pin" }, { type: "null" }] };
    const inner = { type: "object", properties: { pin: secret, old: false } };
    const schema = { $defs: { pin: { type: "integer", writeOnly: true } }, properties: { inner, old: false } };
    const hide = secretNames(schema);
    const body = { value: "hush-1", smtp: { password: "it's hush-2", host: "mail" }, ref: { token: "secret://t" } };
    return [
        curl("PUT", "/secrets/x", body, undefined, ["value"]),
        shell(["horae", "jobs", "run", "x y", "--", "ls"]),
        curl("POST", "/x", { inner: { pin: 1234 } }, undefined, hide),
        [{ inner: { pin: 1234 } }, { token: "a" }, { a: 1 }].map((params) => paramsWord(params, hide)).join(" "),
        toYaml({ a: 1e-7, b: -2e21, c: 1.5e-9 }),
    ];
}"""

UNDONE = """async () => {
    const { act, toasts } = await import("/ui/core/act.js");
    const { go } = await import("/ui/core/route.js");
    const asked = window.fetch;
    const seen = [];
    window.fetch = async (_, { headers }) => { seen.push(headers["horae-namespace"]); return Response.json({}); };
    await act({ title: "Hold", path: "/x", undo: { title: "Release", path: "/y" } });
    go("/ui/queues", {});
    await toasts.value.at(-1).undo.run();
    window.fetch = asked;
    return seen;
}"""


async def test_a_link_signs_in_once_and_leaves_the_address(page, site):
    await page.context.clear_cookies()
    await page.goto(f"{site.url}/#code={site.post('/sign-in/codes')['code']}")
    await page.wait_for_selector(".rail")
    assert "code" not in page.url
    await expect(page.locator(".rail a[aria-current=page]")).to_have_text("Overview")
    await page.get_by_role("button", name="signed in as").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_label("Password")).to_be_visible()
    await check(page)

    await page.goto(f"{site.url}/?again#code=used")
    await expect(page.locator("#sign-in")).to_contain_text("horae sign-in")
    forgive(page, 401)  # no user is signed in


async def test_the_keyboard_reaches_every_page(page, site):
    site.post("/jobs", {"name": "typed", "command": ["true"]})
    await page.goto(site.url)
    await expect(page.locator("main .page")).to_be_visible()  # the key handlers are installed
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("queues")
    await expect(page.get_by_role("option", selected=True)).to_contain_text("Queues")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/ui/queues"))
    await expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("g")
    await page.keyboard.press("j")  # also where j moves through rows
    await expect(page.get_by_role("row", name="typed")).to_be_visible()
    await expect(page.locator("main#content")).to_be_focused()  # and no other element
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/ui/jobs/typed"))


def path_in(request) -> str:
    """Return the path of a request within the API."""
    return request.url.partition("/api/v1")[2]


async def test_the_first_page_is_light(page, site):
    finished = []
    await page.context.clear_cookies()
    sent = await page.context.new_page()
    sent.on("requestfinished", lambda request: finished.append(request))  # noqa: PLW0108
    await sent.route("**/stream?*", lambda route: None)  # changes meanwhile are read again, even if the page is slow
    code = site.post("/sign-in/codes")["code"]
    await sent.goto(f"{site.url}/#code={code}")
    await sent.wait_for_selector(".rail")
    await expect(sent.locator(".trends")).to_be_visible()
    await eventually(lambda: {"/overview", "/workers"} <= {path_in(request) for request in finished})
    bodies = [(await request.sizes())["responseBodySize"] for request in finished]
    assert sum(bodies) < 300_000
    asked = list(map(path_in, finished))
    assert [asked.count(path) for path in ("/overview", "/workers")] == [1, 1]  # several parts share one request
    await sent.close()


async def test_a_slow_answer_may_finish_and_copied_text_contains_no_secret(page, site):
    await page.goto(f"{site.url}/ui/queues")
    read = await page.evaluate(SLOW)
    assert (read["meanwhile"], read["begun"], read["shown"]) == (1, 2, [1, 2])
    assert read["busy"] == 10_000 > 4 * read["calm"]
    site.fleet.request("POST", "/namespaces", {"name": "elsewhere"})
    await page.goto(f"{site.url}/?ns=elsewhere")
    await expect(page.locator(".namespace select")).to_have_value("elsewhere")
    curl, command, pin, params, yaml = await page.evaluate(COPIED)
    assert "hush" not in curl
    assert '"password":"\'"$PASSWORD"\'","host":"mail"' in curl
    assert '"value":"\'"$VALUE"\'"' in curl
    assert '"token":"secret://t"' in curl
    assert "Horae-Namespace: elsewhere" in curl
    assert command == "horae jobs run 'x y' --namespace elsewhere -- ls"
    assert "1234" not in pin
    assert params == '@params.json @params.json {"a":1}'
    assert yaml == "a: 1.0e-7\nb: -2.0e+21\nc: 1.5e-9\n"
    assert await page.evaluate(UNDONE) == ["elsewhere", "elsewhere"]  # the page that is open by then


async def test_rights_events_and_reads_are_those_of_the_namespace(page, site):
    site.post("/users", {"name": "eve", "password": "sesame-sesame", "role": "admin"})
    site.fleet.request("POST", "/namespaces", {"name": "elsewhere"})
    site.fleet.request("PUT", "/users/eve/member", {"role": "viewer"}, **{"horae-namespace": "elsewhere"})
    await page.context.clear_cookies()
    await page.goto(f"{site.url}/ui/settings")
    await page.get_by_label("Name").fill("eve")
    await page.get_by_label("Password").fill("sesame-sesame")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("tab", name="Keys")).to_be_visible()
    async with page.expect_request("**/stream?*") as stream:
        await page.locator(".namespace select").select_option("elsewhere")
    assert (await (await stream.value).all_headers())["horae-namespace"] == "elsewhere"
    await expect(page.get_by_role("button", name="signed in as eve viewer")).to_be_visible()
    await expect(page.get_by_role("tab", name="Keys")).to_have_count(0)
    await page.go_back()
    await expect(page.get_by_role("tab", name="Keys")).to_be_visible()
    forgive(page, 401)  # no user is signed in at first


UNTOLD = """() => [...document.querySelectorAll("main button:disabled")]
  .filter((one) => !one.title).map((one) => one.textContent)"""


async def test_a_button_that_a_viewer_may_not_use_names_the_required_role(page, site):
    key = site.post("/keys", {"name": "looks", "role": "viewer"})["key"]
    site.post("/jobs", {"name": "fails", "command": ["false"]})
    id = site.post("/jobs/fails/trigger", {})["executionId"]
    await eventually(lambda: site.get(f"/executions/{id}")["status"] == "failed", within=30)
    code = site.fleet.post("/sign-in/codes", authorization=f"Bearer {key}")["code"]
    await page.context.clear_cookies()
    await page.goto(f"{site.url}/#code={code}")
    await expect(page.get_by_role("button", name=re.compile("signed in as .* viewer"))).to_be_visible()
    for path, button in (
        (f"executions/{id}", "Run again …"), ("jobs/fails", "Trigger"), ("queues/default", "Purge"),
        ("workers", "Drain"), ("dead-letters", "Retry …"), ("events", "Send an event …"), ("settings", "Edit …"),
    ):  # fmt: skip
        await page.goto(f"{site.url}/ui/{path}")
        await expect(page.locator("main").get_by_role("button", name=button, exact=True).first).to_be_disabled()
        assert await page.evaluate(UNTOLD) == [], path
    forgive(page, 403)  # not readable by a viewer


async def test_a_user_who_signs_in_again_returns_to_the_same_page(page, site):
    site.post("/users", {"name": "ada", "password": "sesame-sesame", "role": "editor"})
    site.post("/users", {"name": "bob", "password": "sesame-sesame", "role": "editor"})

    async def sign_in(name):
        await page.locator("#name").fill(name)
        await page.locator("#password").fill("sesame-sesame")
        await page.keyboard.press("Enter")

    async def begin(name):
        await page.get_by_role("button", name="New rule").click()
        await page.get_by_label("Name", exact=True).fill(name)
        await page.context.clear_cookies()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("dialog", name="Sign in again")).to_be_visible()

    def rules():
        return [one["name"] for one in site.get("/alert-rules")["items"]]

    await page.context.clear_cookies()
    await page.goto(f"{site.url}/ui/alerts?tab=rules")
    await sign_in("ada")
    await begin(RULE)
    await check(page)
    await sign_in("ada")
    await expect(page.locator(".toasts")).to_contain_text(RULE)
    assert rules() == [RULE]

    await begin("another")
    await sign_in("bob")
    asked = page.get_by_role("dialog", name="Do it as bob?")
    await asked.get_by_role("button", name="Leave it").click()
    await expect(page.get_by_role("dialog", name="New rule")).to_contain_text("It was not done.")
    await expect(page.get_by_label("Name", exact=True)).to_have_value("another")  # the typed text
    await expect(page.get_by_role("button", name="signed in as")).to_contain_text("bob")
    assert rules() == [RULE]
    forgive(page, 401)


async def test_every_address_shows_a_message(page, site):
    told = {
        "nothing": "There is no such page.", "constructor": "There is no such page.", "jobs/50%25": "'50%' is neither",
        "jobs/%ff": "neither a job's name", "?from=garbage": "not an RFC 3339 time", "alerts?ns=x": "No namespace",
        "audit?span=toString": "Audit log",
    }  # fmt: skip
    for path, words in told.items():
        await page.goto(f"{site.url}/{path if path.startswith('?') else f'ui/{path}'}")
        await expect(page.locator("main")).to_contain_text(words)
    broken = "export default function Broken() { throw new Error('boom'); }"
    await page.route("**/ui/pages/audit.js", lambda route: route.fulfill(body=broken, content_type="text/javascript"))
    await page.goto(f"{site.url}/ui/audit")
    await expect(page.locator("main .failure")).to_contain_text("could not be shown")
    await page.route("**/api/v1/approvals?*", lambda route: route.fulfill(status=500, json={"detail": "no approvals"}))
    await page.get_by_role("link", name="the overview").click()
    await expect(page.locator(".needs .failure")).to_contain_text(
        "no approvals"
    )  # instead of claiming that no approval is needed
    await expect(page.locator(".needs")).not_to_contain_text("Nothing needs you")
    for told in ("status of", "could not be drawn"):  # the browser and the page tell of each of these
        forgive(page, told)


async def test_a_page_that_could_not_be_loaded_is_loaded_when_the_server_is_back(page, site):
    await page.goto(f"{site.url}/ui/queues")
    await page.route("**/ui/pages/workers.js", lambda route: route.abort())
    await page.get_by_role("link", name="Workers", exact=True).click()
    await expect(page.locator("main .failure")).to_contain_text("This page could not be loaded.")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Not loaded")
    await page.evaluate("() => { window.stays = true; }")
    await page.locator("main").get_by_role("button", name="Try again").click()
    assert await page.evaluate("() => window.stays"), "a reload while the server is away would lose the page"
    await page.unroute("**/ui/pages/workers.js")
    await expect(page.get_by_role("heading", name="Workers", level=1)).to_be_visible()
    forgive(page, "net::ERR_FAILED")


async def test_input_on_the_page_of_a_new_job_becomes_its_name(page, site):
    await page.goto(f"{site.url}/ui/jobs")
    await page.get_by_role("link", name=re.compile("New job|Create the first job")).first.click()
    name = page.get_by_label("name", exact=True)
    await expect(name).to_be_focused()
    await page.keyboard.type("my-first-job")
    await expect(name).to_have_value("my-first-job")


async def test_input_on_the_page_of_a_job_s_definition_goes_into_its_form(page, site):
    site.post("/jobs", {"name": "given", "command": ["true"]})
    await page.goto(f"{site.url}/ui/jobs/given")
    await page.get_by_role("link", name="Edit", exact=True).click()
    await expect(page.get_by_label("name", exact=True)).to_be_focused()
    await page.go_back()
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Make another like it").click()
    await expect(page.get_by_label("name", exact=True)).to_be_focused()
    await page.keyboard.type("g")
    await page.keyboard.type("j")  # the key is no shortcut here
    await expect(page.get_by_label("name", exact=True)).to_have_value("gj")


async def test_a_disabled_button_shows_the_reason(page, site):
    site.post("/jobs", {"name": "still", "command": ["true"], "schedule": "0 3 * * *"})
    for path, button in (
        ("jobs/new", "Create"), ("jobs/still/edit", "Save"), ("jobs/still?tab=definition", "version 1"),
        ("schedule?view=day&at=2100-01-01", "00:00"), ("events?do=send", "Send"), ("queues/default", "Purge"),
    ):  # fmt: skip
        await page.goto(f"{site.url}/ui/{path}")
        await expect(page.locator("button:disabled").filter(has_text=button).first).to_be_visible()
        assert await page.evaluate(UNTOLD.replace("main ", "")) == [], path


async def test_the_server_s_time_is_used_and_the_focus_returns(page, site):
    await page.clock.set_system_time(time.time() + 86400)
    await page.goto(f"{site.url}/ui/settings?tab=keys")
    button = page.get_by_role("button", name="New key …")
    await button.focus()
    now = await page.evaluate("""async () => (await import("/ui/core/clock.js")).now()""")
    assert abs(now / 1000 - time.time()) < 60
    await page.clock.set_system_time(time.time() + 2 * 86400)  # while it is open
    await page.evaluate("""async () => (await import("/ui/core/route.js")).go("/", { range: "6h" })""")
    await expect(page.locator(".page-title p")).to_contain_text("in the last 6 hours")  # requested again at once
    forgive(page, 400)
    await page.goto(f"{site.url}/ui/settings?tab=keys")
    await button.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Name", exact=True)).to_be_focused()
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # as without https
    await page.get_by_role("button", name="copy as curl").click()
    await expect(page.get_by_role("button", name="copied")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(button).to_be_focused()
    revoke = page.get_by_role("button", name="Revoke", exact=True).first
    await revoke.click()
    await page.get_by_role("button", name="Leave it").click()
    await expect(revoke).to_be_focused()


async def test_namespaces_quotas_secrets_and_channels_are_created_and_changed(page, site):
    async def save(button, **fields):
        for label, value in fields.items():
            await page.get_by_label(label.replace("_", " "), exact=True).fill(value)
        copied = await page.locator("dialog .same button").evaluate_all("all => all.map((one) => one.title)")
        await page.get_by_role("button", name=button, exact=True).click()
        await expect(page.locator("dialog")).to_have_count(0)
        return copied

    await page.emulate_media(color_scheme="dark")
    await page.goto(f"{site.url}/ui/settings?tab=namespaces")
    await page.get_by_role("button", name="New namespace …").click()
    await check(page)
    command, _ = await save("Make it", Name="billing", Weight="2", Keep_failed_for="90d")
    assert command == "horae namespaces create billing --weight 2 --retention failed=90d"
    await expect(page.get_by_role("row", name="billing")).to_contain_text("failed=90d")
    await page.get_by_role("button", name="Change …").click()
    command, _ = await save("Save", running="100")
    assert "namespaces quota default --queued none --running 100 " in command
    assert site.get("/namespaces/default/quota")["running"] == 100
    await check(page)

    await page.get_by_role("tab", name="Secrets").click()
    await page.get_by_role("button", name="Set a secret …").click()
    copied = await save("Set it", Name="db", Value="hush-hush")
    await expect(page.locator(".toasts")).to_contain_text("db is set")
    assert "hush" not in "".join(copied) + await page.locator(".toasts").inner_html()
    await check(page)

    await page.goto(f"{site.url}/ui/alerts?tab=channels")
    await page.get_by_role("button", name="New channel …").click()
    await page.get_by_label("Name", exact=True).fill("ops")
    await page.get_by_label("URL").fill("ftp://example.com")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("dialog .failure")).to_be_visible()  # beside the input
    forgive(page, 400)
    await page.get_by_label("URL").fill("https://example.com/hush")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("button", name="I have it").click()
    await page.get_by_role("row", name="ops").get_by_role("button", name="Edit …").click()
    command, curl = await save("Save")
    assert command == "horae alerts channels put ops"
    assert "hush" not in curl
    assert site.get("/alert-channels/ops")["to"]["url"] == "https://example.com/..."
    await check(page)
