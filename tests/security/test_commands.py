"""A user who may define commands can act as the workers' account, so that takes a permission, by every route.

Attacks on other products: a fix on POST that forgot PATCH; an operator who writes scripts through the API.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from horae.store.driver import one
from horae.store.script import Statement
from tests.security.people import Api, People, done, opened

JOBS, TEMPLATES = "/api/v1/jobs", "/api/v1/templates"
EVIL = ["sh", "-c", "id"]
both = pytest.mark.parametrize("people", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
async def people(request: pytest.FixtureRequest) -> AsyncIterator[People]:
    is_plain = getattr(request, "param", "sqlite") == "sqlite"
    async with opened("sqlite://" if is_plain else request.getfixturevalue("postgres_url")) as people:
        await defined(people)
        yield people


async def defined(people: People) -> None:
    """Define the jobs of an administrator."""
    admin = await people.a("admin")
    await done(admin.post(JOBS, json={"name": "call", "http": "https://a.example"}))
    await done(admin.post(JOBS, json={"name": "was", "command": EVIL}))
    await done(admin.put(f"{JOBS}/was", json={"http": "https://a.example"}))
    await done(admin.post(JOBS, json={"name": "run", "command": ["true"]}))
    await done(admin.post(JOBS, json={"name": "gone", "command": EVIL}))
    await done(admin.delete(f"{JOBS}/gone"))
    flow = {"name": "gone-flow", "workflow": {"steps": [{"name": "a", "job": "run", "env": {"A": "b"}}]}}
    await done(admin.post(JOBS, json=flow))
    await done(admin.delete(f"{JOBS}/gone-flow"))
    await done(admin.post(JOBS, json={"name": "tried", "http": "https://a.example"}))
    trial = {"change": {"http": None, "command": EVIL}, "share": "10%"}
    await done(admin.put(f"{JOBS}/tried/rollout", json=trial))
    template = {"name": "shell", "parameters": {"line": {"type": "string"}}, "job": {"command": ["${with.line}"]}}
    await done(admin.post(TEMPLATES, json=template))
    open_form = {"name": "open", "parameters": {"url": {"type": "string"}}, "job": {"http": "${with.url}"}}
    await done(admin.post(TEMPLATES, json=open_form))
    await done(admin.post(JOBS, json={"name": "made", "template": "open", "with": {"url": "https://a.example"}}))


def flow(**step: Any) -> dict[str, Any]:
    return {"workflow": {"steps": [{"name": "a", **step}]}}


DEEP = {"workflow": {"steps": [{"name": "a", "workflow": {"steps": [{"name": "b", "command": EVIL}]}}]}}
UNDOING = {"workflow": {"steps": [{"name": "a", "job": "call", "undo": {"command": EVIL}}]}}
LAST = {"workflow": {"steps": [{"name": "a", "job": "call"}], "finally": [{"name": "b", "command": EVIL}]}}
WAYS: dict[str, tuple[str, str, Any]] = {
    "post a job": ("POST", JOBS, {"name": "evil", "command": EVIL}),
    "post a shell line": ("POST", JOBS, {"name": "evil", "command": {"shell": "id"}}),
    "put a job": ("PUT", f"{JOBS}/call", {"command": EVIL}),
    "patch a job": ("PATCH", f"{JOBS}/call", {"http": None, "command": EVIL}),
    "patch a command": ("PATCH", f"{JOBS}/run", {"command": EVIL}),
    "patch a command's environment": ("PATCH", f"{JOBS}/run", {"env": {"LD_PRELOAD": "/tmp/x.so"}}),
    "patch where a command runs": ("PATCH", f"{JOBS}/run", {"queue": "payroll"}),
    "patch a job to another template": (
        "PATCH",
        f"{JOBS}/made",
        {"template": "shell", "with": {"line": "id", "url": None}},
    ),
    "post a job of a template": ("POST", JOBS, {"name": "evil", "template": "shell", "with": {"line": "id"}}),
    "post over a template": (
        "POST",
        JOBS,
        {"name": "evil", "template": "open", "with": {"url": "https://a.example"}, "http": None, "command": EVIL},
    ),
    "post a template": ("POST", TEMPLATES, {"name": "evil", "job": {"command": EVIL}}),
    "post a template of a workflow": ("POST", TEMPLATES, {"name": "evil", "job": DEEP}),
    "put a template": ("PUT", f"{TEMPLATES}/evil", {"job": {"command": EVIL}}),
    "put a template that jobs are made from": (
        "PUT",
        f"{TEMPLATES}/open",
        {"parameters": {"url": {"type": "string"}}, "job": {"command": ["curl", "${with.url}"]}},
    ),
    "post a step": ("POST", JOBS, {"name": "evil", **flow(command=EVIL)}),
    "put a step": ("PUT", f"{JOBS}/call", flow(command=EVIL)),
    "patch a step": ("PATCH", f"{JOBS}/call", {"http": None, **flow(command=EVIL)}),
    "post a deep step": ("POST", JOBS, {"name": "evil", **DEEP}),
    "post an undoing": ("POST", JOBS, {"name": "evil", **UNDOING}),
    "post a last step": ("POST", JOBS, {"name": "evil", **LAST}),
    "post a step that changes a command": ("POST", JOBS, {"name": "evil", **flow(job="run", env={"PATH": "/tmp"})}),
    "roll back": ("POST", f"{JOBS}/was/rollback", {"version": 1}),
    "restore": ("POST", f"{JOBS}/gone/restore", {}),
    "restore a workflow": ("POST", f"{JOBS}/gone-flow/restore", {}),
    "try a version": ("PUT", f"{JOBS}/was/rollout", {"version": 1, "share": "10%"}),
    "try a change": ("PUT", f"{JOBS}/call/rollout", {"change": {"http": None, "command": EVIL}, "share": "10%"}),
    "promote": ("POST", f"{JOBS}/tried/rollout/promote", {}),
}
EVERYTHING = ("jobs", "job_versions", "templates", "template_versions", "rollouts")


async def definitions(people: People) -> str:
    """Return all definitions."""
    found = []
    for table in EVERYTHING:
        rows = await people.node.store.read(one(Statement(f"all {table}", f"SELECT * FROM {table}")))
        found.append(sorted(map(repr, rows)))
    return repr(found)


async def refused(people: People, who: Api, way: str) -> None:
    method, path, body = WAYS[way]
    before = await definitions(people)
    answer = await who.request(method, path, json=body)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:horae:forbidden"), (way, answer.text)
    assert await definitions(people) == before, way


@both
async def test_an_editor_without_the_permission_cannot_define_commands(people: People):
    editor = await people.a("editor")
    for way in WAYS:
        await refused(people, editor, way)


async def test_an_operator_cannot_define_commands(people: People):
    for operator in (await people.a("operator"), await people.a("operator", "commands")):
        for way in WAYS:
            await refused(people, operator, way)


@pytest.mark.parametrize("way", WAYS)
async def test_with_the_permission_all_these_requests_succeed(people: People, way: str):
    method, path, body = WAYS[way]
    editor = await people.a("editor", "commands")
    answer = await editor.request(method, path, json=body)
    assert answer.status_code in (200, 201), (way, answer.text)


async def test_an_administrator_has_the_permission_by_its_role(people: People):
    admin = await people.a("admin")
    assert (await admin.post(JOBS, json={"name": "mine", "command": EVIL})).status_code == 201


async def test_the_refusal_names_the_missing_permission(people: People):
    answer = await (await people.a("editor")).post(JOBS, json={"name": "evil", "command": EVIL})
    assert 'does not have the permission "commands"' in answer.json()["detail"]
    assert "horae keys create NAME --role editor --permission commands" in answer.json()["remedy"]


async def test_an_editor_defines_other_jobs_and_schedules_commands(people: People):
    editor = await people.a("editor")
    await done(editor.post(JOBS, json={"name": "mine", "http": "https://b.example"}))
    await done(editor.post(JOBS, json={"name": "flow", **flow(job="run")}))
    await done(editor.patch(f"{JOBS}/mine", json={"priority": 7}))
    await done(editor.post(f"{JOBS}/run/triggers", json={"name": "nightly", "cron": "0 3 * * *"}))
    await done(editor.delete(f"{JOBS}/run/triggers/nightly"))
    await done(editor.delete(f"{JOBS}/run?force=true"))


async def test_an_editor_may_change_other_steps_of_a_workflow_with_a_command(people: People):
    admin, editor = await people.a("admin"), await people.a("editor")
    steps = [{"name": "a", "command": ["true"]}, {"name": "b", "http": "https://b.example", "after": ["a"]}]
    await done(admin.post(JOBS, json={"name": "mixed", "workflow": {"steps": steps}}))

    steps[1]["http"] = "https://c.example"
    await done(editor.patch(f"{JOBS}/mixed", json={"workflow": {"steps": steps}}))
    steps[0]["command"] = EVIL
    refusal = await editor.patch(f"{JOBS}/mixed", json={"workflow": {"steps": steps}})

    assert refusal.status_code == 403


async def test_an_editors_browser_has_the_rights_of_an_editor(people: People):
    editor = await people.a("editor")
    code = (await done(editor.post("/api/v1/sign-in/codes")))["code"]
    browser = people.bearing()
    me = await done(browser.post("/api/v1/sign-in", json={"code": code}))
    browser.headers["x-csrf-token"] = me["csrf"]

    assert (me["role"], me["permissions"]) == ("editor", [])
    await refused(people, browser, "post a job")
