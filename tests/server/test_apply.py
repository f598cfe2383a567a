"""POST /api/v1/apply: many definitions at once, permissions, and the audit log."""

from horae.engine.server_node import ServerNode
from tests.server.conftest import Api, Connect

APPLY = "/api/v1/apply"
JOBS = [{"name": "a", "command": "x"}, {"name": "b", "command": "y", "dependencies": ["a"]}]


async def test_the_outcome_of_each_document_is_reported(api: Api):
    done = await api.post(APPLY, json={"jobs": JOBS})
    assert (done.status_code, [(one["name"], one["outcome"]) for one in done.json()["items"]]) == (
        200, [("a", "created"), ("b", "created")],
    )  # fmt: skip
    changed = await api.post(APPLY, json={"jobs": [{**JOBS[0], "priority": 7}, JOBS[1]]})
    assert [(one["outcome"], [each["path"] for each in one["changes"]]) for one in changed.json()["items"]] == [
        ("changed", ["priority"]), ("unchanged", []),
    ]  # fmt: skip


async def test_a_refusal_names_the_document_and_changes_nothing(api: Api):
    refused = (await api.post(APPLY, json={"jobs": [*JOBS, {"name": "c", "comand": "z"}]})).json()
    assert (refused["status"], refused["field"]) == (400, "jobs[2].comand")
    assert refused["detail"].startswith("c: ")
    assert refused["remedy"].endswith("Nothing was applied.")
    assert (await api.get("/api/v1/jobs")).json()["items"] == []
    assert (await api.post(APPLY, json={})).status_code == 400
    assert (await api.post(APPLY, json={"job": []})).status_code == 400


async def test_the_audit_log_records_each_changed_definition(api: Api):
    await api.post(APPLY, json={"jobs": JOBS, "calendars": [{"name": "work", "hours": "MON-FRI 09:00-17:00"}]})
    await api.post(APPLY, json={"jobs": [{**JOBS[0], "priority": 7}, JOBS[1]]})
    await api.post(f"{APPLY}?dryRun=true", json={"jobs": [{"name": "z", "command": "x"}]})
    rows = (await api.get("/api/v1/audit/log")).json()["items"]
    told = sorted((row["action"], row["target"]) for row in rows if not row["action"].startswith("apply"))
    assert told == [
        ("calendars.put", "calendars/work"), ("jobs.create", "jobs/a"), ("jobs.create", "jobs/b"),
        ("jobs.replace", "jobs/a"),
    ]  # fmt: skip
    [changed] = [row for row in rows if row["action"] == "jobs.replace"]
    assert changed["detail"]["changed"] == {"priority": [4, 7]}


async def test_a_credential_applies_only_permitted_definitions(api: Api, connect: Connect, node: ServerNode):
    await api.post("/api/v1/jobs", json={"name": "other", "command": "x", "queue": "mine"})
    key = await node.tenancy.keys.create(
        1, "scoped", "editor", permissions=("commands",), jobs=("etl-*",), queues=("mine",)
    )
    scoped = connect(authorization=f"Bearer {key.text}")
    own = {"name": "etl-a", "command": "x", "queue": "mine"}
    assert (await scoped.post(APPLY, json={"jobs": [own]})).status_code == 200
    for body in (
        {"jobs": [own, {"name": "other", "command": "y", "queue": "mine"}]},
        {"jobs": [own, {"name": "etl-b", "command": "y"}]},
        {"templates": [{"name": "etl-t", "job": {"command": "x"}}]},
        {"calendars": [{"name": "etl-c", "hours": "MON-FRI 09:00-17:00"}]},
    ):
        assert (await scoped.post(APPLY, json=body)).status_code == 403
    plain = connect(authorization=f"Bearer {(await node.tenancy.keys.create(1, 'no commands', 'editor')).text}")
    http = {"name": "h", "http": {"url": "https://example.com"}}
    assert (await plain.post(APPLY, json={"jobs": [http, {"name": "c", "command": "x"}]})).status_code == 403
    assert (await api.get("/api/v1/jobs/h")).status_code == 404
