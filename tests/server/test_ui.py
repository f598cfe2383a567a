"""The UI's files: public, without inline code, compressed for clients that accept it, and no other file is served."""

import hashlib
import json
import posixpath
import re

import pytest

from horae.server.routes.system.ui import _files
from tests.server.conftest import Api


async def test_the_page_and_its_files_are_served_to_everybody(anonymous: Api):
    page = await anonymous.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name in re.findall(r'(?:src|href)="(/(?!api/)[^"]+)"', page.text):
        assert (await anonymous.get(name)).status_code == 200


async def test_nothing_is_inline():
    page = _files()["index.html"].content.decode()
    assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", page)
    own = {name: file.content.decode() for name, file in _files().items() if not name.startswith("vendor/")}
    unsafe = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(|new Function|javascript:"
    )
    assert [name for name, text in own.items() if unsafe.search(text)] == []


async def test_libraries_are_as_they_were_published():
    for entry in json.loads(_files()["vendor/VENDOR.json"].content):
        assert hashlib.sha256(_files()[f"vendor/{entry['file']}"].content).hexdigest() == entry["sha256"], entry


async def test_addresses_of_the_page_return_the_page(anonymous: Api):
    page = await anonymous.get("/")
    for path in ("/ui/jobs", "/ui/jobs/a.b", "/ui/executions/x", "/ui/dead-letters"):
        assert (await anonymous.get(path)).content == page.content


async def test_an_unknown_address_returns_the_page(anonymous: Api):
    page = await anonymous.get("/")
    assert (await anonymous.get("/ui")).headers["location"] == "/"
    assert (await anonymous.get("/ui/")).content == page.content
    lost = await anonymous.get("/ui/nothing", headers={"accept": "text/html,*/*"})
    assert (lost.status_code, lost.content) == (404, page.content)


async def test_initial_files_of_the_page_are_preloaded():
    page = _files()["index.html"].content.decode()
    preloaded = re.findall(r'rel="modulepreload" href="/ui/([^"]+)"', page)
    begun, known = ["core/app.js"], {"core/app.js"}
    for name in begun:
        text = _files()[name].content.decode()
        for found in re.findall(r'(?:^|;)(?:import|export)\b[^;"]*"(\.[^"]+)"', text, re.MULTILINE):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), found))
            if path not in known:
                known.add(path)
                begun.append(path)
    assert sorted(preloaded) == sorted(known - {"core/app.js"})


async def test_files_known_to_the_browser_are_not_sent_again(anonymous: Api):
    first = await anonymous.get("/ui/core/app.js")
    assert first.headers["content-encoding"] == "gzip"
    again = await anonymous.get("/ui/core/app.js", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304
    assert not again.content
    plain = await anonymous.get("/ui/core/app.js", headers={"accept-encoding": "identity"})
    assert plain.content == first.content


@pytest.mark.parametrize(
    "path",
    ["/ui/nothing.js", "/ui/__init__.py", "/ui/../version.py", "/ui/%2e%2e/version.py", "/ui//etc/passwd"],
)
async def test_only_the_uis_own_files_are_served(path: str, api: Api):
    assert (await api.get(f"http://horae.test{path}")).status_code == 404
