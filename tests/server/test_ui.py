"""The placeholder page: public, without anything inline, and it signs in by itself."""

import re

import pytest

from horae.engine.node import Node
from horae.env import system_env
from horae.server.routes.ui import _files
from horae.server.run import serve
from tests.server.conftest import Api
from tests.waiting import eventually


async def test_the_page_and_its_files_are_served_to_everybody(anonymous: Api):
    page = await anonymous.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name in re.findall(r'(?:src|href)="(/(?!api/)[^"]+)"', page.text):
        assert (await anonymous.get(name)).status_code == 200


async def test_nothing_is_inline():
    page = _files()["index.html"].decode()
    assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", page)


@pytest.mark.parametrize(
    "path",
    ["/ui/nothing.js", "/ui/__init__.py", "/ui/../version.py", "/ui/%2e%2e/version.py", "/ui//etc/passwd", "/ui/"],
)
async def test_only_the_uis_own_files_are_there(path: str, api: Api):
    assert (await api.get(f"http://horae.test{path}")).status_code == 404


@pytest.mark.browser
async def test_a_browser_signs_in_by_its_link_and_sees_the_counts(page):
    node = await Node.open(system_env(), "sqlite://")
    serving = await serve(node, "127.0.0.1", 0)
    try:
        code = (await node.keys.new_sign_in_code()).text
        await page.goto(f"{serving.url}/#code={code}")
        await page.wait_for_selector("#counts:not([hidden])")
        assert await page.text_content("#state") == "ready"
        await eventually(lambda: shows(page, "#jobs", "0"))
        assert "code" not in page.url

        await page.click("#sign-out")
        await page.wait_for_selector("#sign-in:not([hidden])")

        await page.goto(f"{serving.url}/?again#code={code}")
        await eventually(lambda: says(page, "#sign-in", "Make a new link with `horae sign-in`"))
    finally:
        await serving.stop()


async def says(page, selector: str, text: str) -> bool:
    return text in await page.text_content(selector)


async def shows(page, selector: str, text: str) -> bool:
    return await page.text_content(selector) == text
