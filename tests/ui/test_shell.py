"""The frame: signing in and out, moving about, and what is said when the server is gone."""

import re

from playwright.async_api import expect

from tests.ui.conftest import check


async def test_a_link_signs_in_once_and_leaves_the_address(page, site):
    assert "code" not in page.url
    await expect(page.locator(".rail a[aria-current=page]")).to_have_text("Overview")
    await page.get_by_role("button", name="signed in as").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_label("Password")).to_be_visible()
    await check(page)
    page.complaints.clear()  # the browser itself tells of the 401 that says nobody is signed in

    await page.goto(f"{site.url}/?again#code=used")
    await expect(page.locator("#sign-in")).to_contain_text("horae sign-in")
    page.complaints.clear()


async def test_the_keyboard_goes_anywhere(page):
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("queues")
    await expect(page.get_by_role("option", selected=True)).to_contain_text("Queues")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/ui/queues"))
    await expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


async def test_the_first_page_is_light(page, site):
    finished = []
    await page.goto("about:blank")  # what is shown there would go on reading
    await page.context.clear_cookies()
    sent = await page.context.new_page()
    sent.on("requestfinished", lambda request: finished.append(request))  # noqa: PLW0108
    code = site.post("/sign-in/codes")["code"]
    await sent.goto(f"{site.url}/#code={code}")
    await sent.wait_for_selector(".rail")
    bodies = [(await request.sizes())["responseBodySize"] for request in finished]
    assert sum(bodies) < 300_000
    await sent.close()
