"""The browser of the UI tests."""

import pytest


@pytest.mark.browser
async def test_a_page_runs_its_script(page):
    await page.set_content("<button onclick='this.textContent = 6 * 7'>?</button>")
    await page.click("button")
    assert await page.text_content("button") == "42"
